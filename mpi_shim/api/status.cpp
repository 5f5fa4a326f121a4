// SPDX-License-Identifier: BSD-2-Clause
// What a status says of a message's length, and statuses that programs fill in themselves.
#include "mpi_shim/core/status.hpp"

#include <climits>

#include "mpi_shim/api/datatype_arguments.hpp"
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/core/big_lock.hpp"

namespace vmpi {
namespace {

enum class Unit { kElements, kBasics };

int count_of(const char* function, const MPI_Status* status, MPI_Datatype handle, Unit unit,
             MPI_Count* out) noexcept {
  BigGuard guard;
  Datatype* type = nullptr;
  if (const int error = check_type(nullptr, function, "datatype", handle, type)) return error;
  if (const int error = check_not_null(function, "status", status)) return error;
  if (const int error = check_not_null(function, "count", out)) return error;
  const std::uint64_t bytes = bytes_of(*status);
  std::int64_t count = -1;
  if (unit == Unit::kBasics) {
    count = elements_of_bytes(*type, bytes);
  } else if (type->size == 0) {
    count = bytes == 0 ? 0 : -1;
  } else if (bytes % static_cast<std::uint64_t>(type->size) == 0) {
    count = static_cast<std::int64_t>(bytes / static_cast<std::uint64_t>(type->size));
  }
  *out = count < 0 ? MPI_UNDEFINED : count;
  return MPI_SUCCESS;
}

int count_of(const char* function, const MPI_Status* status, MPI_Datatype handle, Unit unit,
             int* out) noexcept {
  MPI_Count count = 0;
  const int error = count_of(function, status, handle, unit, out != nullptr ? &count : nullptr);
  if (error == MPI_SUCCESS) *out = count > INT_MAX ? MPI_UNDEFINED : static_cast<int>(count);
  return error;
}

int set_elements(const char* function, MPI_Status* status, MPI_Datatype handle,
                 MPI_Count count) noexcept {
  BigGuard guard;
  Datatype* type = nullptr;
  if (const int error = check_type(nullptr, function, "datatype", handle, type)) return error;
  if (const int error = check_not_null(function, "status", status)) return error;
  if (const int error = check_not_negative(function, MPI_ERR_COUNT, "count", count)) return error;
  const std::int64_t bytes = bytes_of_elements(*type, count);
  if (bytes < 0)
    return raise(nullptr, MPI_ERR_VALUE_TOO_LARGE, function, "%lld elements have too many bytes",
                 static_cast<long long>(count));
  set_bytes(*status, static_cast<std::uint64_t>(bytes));
  return MPI_SUCCESS;
}

int get_field(const char* function, const MPI_Status* status, int MPI_Status::*field,
              int* out) noexcept {
  if (status != nullptr && out != nullptr) {
    *out = status->*field;
    return MPI_SUCCESS;
  }
  BigGuard guard;
  return check_not_null(function, status == nullptr ? "status" : "the result", nullptr);
}

int set_field(const char* function, MPI_Status* status, int MPI_Status::*field,
              int value) noexcept {
  if (status != nullptr) {
    status->*field = value;
    return MPI_SUCCESS;
  }
  BigGuard guard;
  return check_not_null(function, "status", status);
}

}  // namespace
}  // namespace vmpi

using namespace vmpi;

VMPI_ENTRY(int, MPI_Get_count, (const MPI_Status* status, MPI_Datatype datatype, int* count)) {
  return count_of("MPI_Get_count", status, datatype, Unit::kElements, count);
}
VMPI_ENTRY(int, MPI_Get_count_c,
           (const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count)) {
  return count_of("MPI_Get_count_c", status, datatype, Unit::kElements, count);
}
VMPI_ENTRY(int, MPI_Get_elements, (const MPI_Status* status, MPI_Datatype datatype, int* count)) {
  return count_of("MPI_Get_elements", status, datatype, Unit::kBasics, count);
}
VMPI_ENTRY(int, MPI_Get_elements_x,
           (const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count)) {
  return count_of("MPI_Get_elements_x", status, datatype, Unit::kBasics, count);
}
VMPI_ENTRY(int, MPI_Get_elements_c,
           (const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count)) {
  return count_of("MPI_Get_elements_c", status, datatype, Unit::kBasics, count);
}

VMPI_ENTRY(int, MPI_Status_set_elements, (MPI_Status * status, MPI_Datatype datatype, int count)) {
  return set_elements("MPI_Status_set_elements", status, datatype, count);
}
VMPI_ENTRY(int, MPI_Status_set_elements_x,
           (MPI_Status * status, MPI_Datatype datatype, MPI_Count count)) {
  return set_elements("MPI_Status_set_elements_x", status, datatype, count);
}
VMPI_ENTRY(int, MPI_Status_set_elements_c,
           (MPI_Status * status, MPI_Datatype datatype, MPI_Count count)) {
  return set_elements("MPI_Status_set_elements_c", status, datatype, count);
}

VMPI_ENTRY(int, MPI_Status_set_cancelled, (MPI_Status * status, int flag)) {
  if (status == nullptr) {
    BigGuard guard;
    return check_not_null("MPI_Status_set_cancelled", "status", status);
  }
  set_cancelled(*status, flag != 0);
  return MPI_SUCCESS;
}
VMPI_ENTRY(int, MPI_Test_cancelled, (const MPI_Status* status, int* flag)) {
  if (status == nullptr || flag == nullptr) {
    BigGuard guard;
    return check_not_null("MPI_Test_cancelled", status == nullptr ? "status" : "flag", nullptr);
  }
  *flag = is_cancelled(*status) ? 1 : 0;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Status_get_source, (const MPI_Status* status, int* source)) {
  return get_field("MPI_Status_get_source", status, &MPI_Status::MPI_SOURCE, source);
}
VMPI_ENTRY(int, MPI_Status_get_tag, (const MPI_Status* status, int* tag)) {
  return get_field("MPI_Status_get_tag", status, &MPI_Status::MPI_TAG, tag);
}
VMPI_ENTRY(int, MPI_Status_get_error, (const MPI_Status* status, int* err)) {
  return get_field("MPI_Status_get_error", status, &MPI_Status::MPI_ERROR, err);
}
VMPI_ENTRY(int, MPI_Status_set_source, (MPI_Status * status, int source)) {
  return set_field("MPI_Status_set_source", status, &MPI_Status::MPI_SOURCE, source);
}
VMPI_ENTRY(int, MPI_Status_set_tag, (MPI_Status * status, int tag)) {
  return set_field("MPI_Status_set_tag", status, &MPI_Status::MPI_TAG, tag);
}
VMPI_ENTRY(int, MPI_Status_set_error, (MPI_Status * status, int err)) {
  return set_field("MPI_Status_set_error", status, &MPI_Status::MPI_ERROR, err);
}
