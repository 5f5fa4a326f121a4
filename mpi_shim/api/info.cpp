// SPDX-License-Identifier: BSD-2-Clause
// Info objects (MPI 5.0 chapter 10).
#include "mpi_shim/core/info.hpp"

#include <algorithm>
#include <cstring>

#include "mpi_shim/api/datatype_arguments.hpp"
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/core/big_lock.hpp"

namespace vmpi {
namespace {

int check_info(const char* function, MPI_Info handle, Info*& out) noexcept {
  if (handle == MPI_INFO_NULL)
    return raise(nullptr, MPI_ERR_INFO, function, "info is MPI_INFO_NULL");
  out = find_info(handle);
  if (out != nullptr) return 0;
  return raise(nullptr, MPI_ERR_INFO, function, "info is %p, which is no info or was freed",
               static_cast<void*>(handle));
}

int check_writable(const char* function, MPI_Info handle, Info*& out) noexcept {
  if (handle == MPI_INFO_ENV)
    return raise(nullptr, MPI_ERR_INFO, function, "info is MPI_INFO_ENV, which stays as it is");
  return check_info(function, handle, out);
}

int check_key(const char* function, const char* key) noexcept {
  if (const int error = check_not_null(function, "key", key)) return error;
  const std::size_t length = ::strnlen(key, MPI_MAX_INFO_KEY);
  if (length != 0 && length < MPI_MAX_INFO_KEY) return 0;
  return raise(nullptr, MPI_ERR_INFO_KEY, function, "key %s",
               length == 0 ? "is empty" : "has more than MPI_MAX_INFO_KEY - 1 characters");
}

int give(const char* function, Info* made, bool is_filled, MPI_Info* out) noexcept {
  if (made != nullptr && is_filled) {
    *out = reinterpret_cast<MPI_Info>(static_cast<std::uintptr_t>(made->handle));
    return MPI_SUCCESS;
  }
  if (made != nullptr) release(*made);
  return raise(nullptr, MPI_ERR_NO_MEM, function, "there is no memory for the info");
}

/// `info` has `key` with `*value`; null: it has not.
int look_up(const char* function, MPI_Info handle, const char* key, const char** value) noexcept {
  Info* info = nullptr;
  if (const int error = check_info(function, handle, info)) return error;
  if (const int error = check_key(function, key)) return error;
  *value = info->get(key);
  return 0;
}

/// Up to `room` bytes with the zero at the end.
void copy_text(const char* text, char* out, std::size_t room) noexcept {
  const std::size_t length = std::min(std::strlen(text), room - 1);
  std::memcpy(out, text, length);
  out[length] = '\0';
}

}  // namespace
}  // namespace vmpi

using namespace vmpi;

VMPI_ENTRY(int, MPI_Info_create, (MPI_Info * info)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Info_create";
  if (const int error = check_not_null(kName, "info", info)) return error;
  return give(kName, make_info(), true, info);
}

VMPI_ENTRY(int, MPI_Info_create_env, (int argc, char* argv[], MPI_Info* info)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Info_create_env";
  if (const int error = check_not_null(kName, "info", info)) return error;
  Info* const made = make_info();
  const bool is_filled =
      made != nullptr && describe_program(*made, argv != nullptr ? argc : 0, argv);
  return give(kName, made, is_filled, info);
}

VMPI_ENTRY(int, MPI_Info_dup, (MPI_Info info, MPI_Info* newinfo)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Info_dup";
  Info* from = nullptr;
  if (const int error = check_info(kName, info, from)) return error;
  if (const int error = check_not_null(kName, "newinfo", newinfo)) return error;
  Info* const made = make_info();
  bool is_filled = made != nullptr;
  for (const InfoEntry& entry : from->entries)
    is_filled = is_filled && made->set(entry.key, entry.value);
  return give(kName, made, is_filled, newinfo);
}

VMPI_ENTRY(int, MPI_Info_free, (MPI_Info * info)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Info_free";
  if (const int error = check_not_null(kName, "info", info)) return error;
  Info* found = nullptr;
  if (const int error = check_writable(kName, *info, found)) return error;
  release(*found);
  *info = MPI_INFO_NULL;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Info_set, (MPI_Info info, const char* key, const char* value)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Info_set";
  Info* found = nullptr;
  if (const int error = check_writable(kName, info, found)) return error;
  if (const int error = check_key(kName, key)) return error;
  if (const int error = check_not_null(kName, "value", value)) return error;
  const std::size_t length = ::strnlen(value, MPI_MAX_INFO_VAL);
  if (length >= MPI_MAX_INFO_VAL)
    return raise(nullptr, MPI_ERR_INFO_VALUE, kName,
                 "the value of %s has more than MPI_MAX_INFO_VAL - 1 characters", key);
  if (!found->set(key, value))
    return raise(nullptr, MPI_ERR_NO_MEM, kName, "there is no memory for the value of %s", key);
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Info_delete, (MPI_Info info, const char* key)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Info_delete";
  Info* found = nullptr;
  if (const int error = check_writable(kName, info, found)) return error;
  if (const int error = check_key(kName, key)) return error;
  if (!found->remove(key))
    return raise(nullptr, MPI_ERR_INFO_NOKEY, kName, "there is no key %s", key);
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Info_get_string,
           (MPI_Info info, const char* key, int* buflen, char* value, int* flag)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Info_get_string";
  const char* text = nullptr;
  if (const int error = look_up(kName, info, key, &text)) return error;
  if (const int error = check_not_null(kName, "buflen", buflen)) return error;
  if (const int error = check_not_null(kName, "flag", flag)) return error;
  if (const int error = check_not_negative(kName, MPI_ERR_ARG, "buflen", *buflen)) return error;
  if (text != nullptr && *buflen > 0) {
    if (const int error = check_not_null(kName, "value", value)) return error;
    copy_text(text, value, static_cast<std::size_t>(*buflen));
  }
  *flag = text != nullptr ? 1 : 0;
  if (text != nullptr) *buflen = static_cast<int>(std::strlen(text)) + 1;
  return MPI_SUCCESS;
}

// `valuelen` does not count the zero at the end, unlike the length of MPI_Info_get_string.
VMPI_ENTRY(int, MPI_Info_get,
           (MPI_Info info, const char* key, int valuelen, char* value, int* flag)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Info_get";
  const char* text = nullptr;
  if (const int error = look_up(kName, info, key, &text)) return error;
  if (const int error = check_not_null(kName, "value", value)) return error;
  if (const int error = check_not_null(kName, "flag", flag)) return error;
  if (const int error = check_not_negative(kName, MPI_ERR_ARG, "valuelen", valuelen)) return error;
  if (text != nullptr) copy_text(text, value, static_cast<std::size_t>(valuelen) + 1);
  *flag = text != nullptr ? 1 : 0;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Info_get_valuelen, (MPI_Info info, const char* key, int* valuelen, int* flag)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Info_get_valuelen";
  const char* text = nullptr;
  if (const int error = look_up(kName, info, key, &text)) return error;
  if (const int error = check_not_null(kName, "valuelen", valuelen)) return error;
  if (const int error = check_not_null(kName, "flag", flag)) return error;
  *flag = text != nullptr ? 1 : 0;
  if (text != nullptr) *valuelen = static_cast<int>(std::strlen(text));
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Info_get_nkeys, (MPI_Info info, int* nkeys)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Info_get_nkeys";
  Info* found = nullptr;
  if (const int error = check_info(kName, info, found)) return error;
  if (const int error = check_not_null(kName, "nkeys", nkeys)) return error;
  *nkeys = static_cast<int>(found->entries.size());
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Info_get_nthkey, (MPI_Info info, int n, char* key)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Info_get_nthkey";
  Info* found = nullptr;
  if (const int error = check_info(kName, info, found)) return error;
  if (const int error = check_not_null(kName, "key", key)) return error;
  if (n < 0 || static_cast<std::size_t>(n) >= found->entries.size())
    return raise(nullptr, MPI_ERR_ARG, kName, "n is %d, there are %zu keys", n,
                 found->entries.size());
  copy_text(found->entries[static_cast<std::size_t>(n)].key, key, MPI_MAX_INFO_KEY);
  return MPI_SUCCESS;
}
