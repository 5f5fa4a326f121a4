// SPDX-License-Identifier: BSD-2-Clause
// Commit, free, duplicates, sizes, bounds and names of datatypes, and addresses as numbers.
#include <climits>
#include <cstdint>
#include <cstring>

#include "mpi_shim/api/datatype_arguments.hpp"
#include "mpi_shim/api/datatype_contents.hpp"
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/core/big_lock.hpp"

namespace vmpi {
namespace {

int size_of(const char* function, MPI_Datatype handle, MPI_Count* out) noexcept {
  BigGuard guard;
  Datatype* type = nullptr;
  if (const int error = check_type(nullptr, function, "datatype", handle, type)) return error;
  if (const int error = check_not_null(function, "size", out)) return error;
  *out = type->size;
  return MPI_SUCCESS;
}

template <class T>
int bounds_of(const char* function, MPI_Datatype handle, bool is_true, T* lb, T* extent) noexcept {
  BigGuard guard;
  Datatype* type = nullptr;
  if (const int error = check_type(nullptr, function, "datatype", handle, type)) return error;
  if (const int error = check_not_null(function, "lb", lb)) return error;
  if (const int error = check_not_null(function, "extent", extent)) return error;
  *lb = is_true ? type->true_lb : type->lb;
  *extent = is_true ? type->true_extent : type->extent;
  return MPI_SUCCESS;
}

}  // namespace
}  // namespace vmpi

using namespace vmpi;

VMPI_ENTRY(int, MPI_Type_commit, (MPI_Datatype * datatype)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Type_commit";
  if (const int error = check_not_null(kName, "datatype", datatype)) return error;
  Datatype* type = nullptr;
  if (const int error = check_type(nullptr, kName, "datatype", *datatype, type)) return error;
  type->is_committed = true;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Type_free, (MPI_Datatype * datatype)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Type_free";
  if (const int error = check_not_null(kName, "datatype", datatype)) return error;
  Datatype* type = nullptr;
  if (const int error = check_type(nullptr, kName, "datatype", *datatype, type)) return error;
  if (type->is_predefined)
    return raise(nullptr, MPI_ERR_TYPE, kName, "datatype is %s, which is predefined", type->name);
  if (type->program_handles == 1 && !type->attributes.empty()) {
    const int error = delete_attributes(*type);
    if (error != MPI_SUCCESS)
      return raise(nullptr, error, kName, "a delete function of its attributes failed");
  }
  --type->program_handles;
  *datatype = MPI_DATATYPE_NULL;
  release(*type);
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Type_dup, (MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Type_dup";
  Datatype* old = nullptr;
  if (const int error = check_type(nullptr, kName, "oldtype", oldtype, old)) return error;
  if (const int error = check_not_null(kName, "newtype", newtype)) return error;
  Datatype* made = nullptr;
  const int made_error = make_duplicate(*old, made);
  if (made_error == MPI_SUCCESS && !old->attributes.empty()) {
    const int error = copy_attributes(*old, *made);
    if (error != MPI_SUCCESS) {
      release(*made);
      return raise(nullptr, error, kName, "a copy function of its attributes failed");
    }
  }
  return give_type(kName, made_error, made, MPI_COMBINER_DUP, Contents(made, false), newtype);
}

VMPI_ENTRY(int, MPI_Type_size, (MPI_Datatype datatype, int* size)) {
  MPI_Count large = 0;
  const int error = size_of("MPI_Type_size", datatype, size != nullptr ? &large : nullptr);
  if (error == MPI_SUCCESS) *size = large > INT_MAX ? MPI_UNDEFINED : static_cast<int>(large);
  return error;
}
VMPI_ENTRY(int, MPI_Type_size_x, (MPI_Datatype datatype, MPI_Count* size)) {
  return size_of("MPI_Type_size_x", datatype, size);
}
VMPI_ENTRY(int, MPI_Type_size_c, (MPI_Datatype datatype, MPI_Count* size)) {
  return size_of("MPI_Type_size_c", datatype, size);
}

VMPI_ENTRY(int, MPI_Type_get_extent, (MPI_Datatype datatype, MPI_Aint* lb, MPI_Aint* extent)) {
  return bounds_of("MPI_Type_get_extent", datatype, false, lb, extent);
}
VMPI_ENTRY(int, MPI_Type_get_extent_x, (MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent)) {
  return bounds_of("MPI_Type_get_extent_x", datatype, false, lb, extent);
}
VMPI_ENTRY(int, MPI_Type_get_extent_c, (MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent)) {
  return bounds_of("MPI_Type_get_extent_c", datatype, false, lb, extent);
}
VMPI_ENTRY(int, MPI_Type_get_true_extent,
           (MPI_Datatype datatype, MPI_Aint* true_lb, MPI_Aint* true_extent)) {
  return bounds_of("MPI_Type_get_true_extent", datatype, true, true_lb, true_extent);
}
VMPI_ENTRY(int, MPI_Type_get_true_extent_x,
           (MPI_Datatype datatype, MPI_Count* true_lb, MPI_Count* true_extent)) {
  return bounds_of("MPI_Type_get_true_extent_x", datatype, true, true_lb, true_extent);
}
VMPI_ENTRY(int, MPI_Type_get_true_extent_c,
           (MPI_Datatype datatype, MPI_Count* true_lb, MPI_Count* true_extent)) {
  return bounds_of("MPI_Type_get_true_extent_c", datatype, true, true_lb, true_extent);
}

// Of MPI 1.
VMPI_ENTRY(int, MPI_Type_extent, (MPI_Datatype datatype, MPI_Aint* extent)) {
  MPI_Aint lb = 0;
  return bounds_of("MPI_Type_extent", datatype, false, &lb, extent);
}
VMPI_ENTRY(int, MPI_Type_lb, (MPI_Datatype datatype, MPI_Aint* displacement)) {
  MPI_Aint extent = 0;
  return bounds_of("MPI_Type_lb", datatype, false, displacement, &extent);
}
VMPI_ENTRY(int, MPI_Type_ub, (MPI_Datatype datatype, MPI_Aint* displacement)) {
  MPI_Aint lb = 0;
  MPI_Aint extent = 0;
  const int error =
      bounds_of("MPI_Type_ub", datatype, false, &lb, displacement != nullptr ? &extent : nullptr);
  if (error == MPI_SUCCESS) *displacement = lb + extent;
  return error;
}

VMPI_ENTRY(int, MPI_Type_set_name, (MPI_Datatype datatype, const char* type_name)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Type_set_name";
  Datatype* type = nullptr;
  if (const int error = check_type(nullptr, kName, "datatype", datatype, type)) return error;
  if (const int error = check_not_null(kName, "type_name", type_name)) return error;
  const std::size_t length = ::strnlen(type_name, MPI_MAX_OBJECT_NAME - 1);
  std::memcpy(type->name, type_name, length);
  type->name[length] = '\0';
  return MPI_SUCCESS;
}
VMPI_ENTRY(int, MPI_Type_get_name, (MPI_Datatype datatype, char* type_name, int* resultlen)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Type_get_name";
  // The null handle has a name too.
  const char* name = "MPI_DATATYPE_NULL";
  if (datatype != MPI_DATATYPE_NULL) {
    Datatype* type = nullptr;
    if (const int error = check_type(nullptr, kName, "datatype", datatype, type)) return error;
    name = type->name;
  }
  if (const int error = check_not_null(kName, "type_name", type_name)) return error;
  if (const int error = check_not_null(kName, "resultlen", resultlen)) return error;
  const std::size_t length = std::strlen(name);
  std::memcpy(type_name, name, length + 1);
  *resultlen = static_cast<int>(length);
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Get_address, (const void* location, MPI_Aint* address)) {
  if (address == nullptr) {
    BigGuard guard;
    return check_not_null("MPI_Get_address", "address", address);
  }
  *address = reinterpret_cast<MPI_Aint>(location);
  return MPI_SUCCESS;
}
VMPI_ENTRY(int, MPI_Address, (void* location, MPI_Aint* address)) {
  return PMPI_Get_address(location, address);
}
// Addresses wrap.
VMPI_ENTRY(MPI_Aint, MPI_Aint_add, (MPI_Aint base, MPI_Aint disp)) {
  return static_cast<MPI_Aint>(static_cast<std::uintptr_t>(base) +
                               static_cast<std::uintptr_t>(disp));
}
VMPI_ENTRY(MPI_Aint, MPI_Aint_diff, (MPI_Aint addr1, MPI_Aint addr2)) {
  return static_cast<MPI_Aint>(static_cast<std::uintptr_t>(addr1) -
                               static_cast<std::uintptr_t>(addr2));
}
