// SPDX-License-Identifier: BSD-2-Clause
// Keyvals and attributes (MPI 5.0 section 7.7), with the names that MPI-2 replaced.
#include "mpi_shim/core/attributes.hpp"

#include "mpi_shim/api/comm_arguments.hpp"
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/core/big_lock.hpp"

namespace vmpi {
namespace {

int bad_keyval(Comm* comm, const char* function, int keyval) noexcept {
  return raise(comm, MPI_ERR_KEYVAL, function,
               "argument `keyval` is %d, which is no keyval of this kind of object: it was freed, "
               "or never made",
               keyval);
}

int bad_type(const char* function, MPI_Datatype handle) noexcept {
  return raise(nullptr, MPI_ERR_TYPE, function, "argument `datatype` is no datatype (0x%llx)",
               told(handle));
}

int tell_callback(Comm* comm, const char* function, int error) noexcept {
  if (error == MPI_SUCCESS) return error;
  if (error == MPI_ERR_NO_MEM) return no_memory(comm, function);
  return raise(comm, error, function, "the keyval's delete function returned %d", error);
}

int create(KeyvalOwner owner, CopyFunction copy, DeleteFunction remove, int* out, void* extra_state,
           const char* function) noexcept {
  const BigGuard guard;
  if (out == nullptr) return null_pointer(nullptr, function, "keyval");
  Keyval* const made = make_keyval(owner);
  if (made == nullptr) return no_memory(nullptr, function);
  made->copy = copy;
  made->remove = remove;
  made->extra_state = extra_state;
  *out = static_cast<int>(made->handle);
  return MPI_SUCCESS;
}

int create_for_comm(MPI_Comm_copy_attr_function* copy, MPI_Comm_delete_attr_function* remove,
                    int* out, void* extra_state, const char* function) noexcept {
  CopyFunction copy_function = {};
  copy_function.comm = copy;
  DeleteFunction delete_function = {};
  delete_function.comm = remove;
  return create(KeyvalOwner::kComm, copy_function, delete_function, out, extra_state, function);
}

int free(KeyvalOwner owner, int* keyval, const char* function) noexcept {
  const BigGuard guard;
  if (keyval == nullptr) return null_pointer(nullptr, function, "keyval");
  Keyval* const found = find_keyval(*keyval, owner);
  if (found == nullptr) return bad_keyval(nullptr, function, *keyval);
  free_keyval(*found);
  *keyval = MPI_KEYVAL_INVALID;
  return MPI_SUCCESS;
}

int put(MPI_Comm handle, int keyval, void* value, const char* function) noexcept {
  const BigGuard guard;
  Comm* const comm = find_comm(handle);
  if (comm == nullptr) return bad_comm(function, "comm", handle);
  int* unused;
  if (predefined_attribute(keyval, &unused))
    return raise(comm, MPI_ERR_KEYVAL, function,
                 "argument `keyval` is %d, whose value only the library sets", keyval);
  Keyval* const found = find_keyval(keyval, KeyvalOwner::kComm);
  if (found == nullptr) return bad_keyval(comm, function, keyval);
  return tell_callback(comm, function, set_attribute(*comm, *found, value));
}

int get(MPI_Comm handle, int keyval, void* out, int* flag, const char* function) noexcept {
  const BigGuard guard;
  Comm* const comm = find_comm(handle);
  if (comm == nullptr) return bad_comm(function, "comm", handle);
  if (out == nullptr) return null_pointer(comm, function, "attribute_val");
  if (flag == nullptr) return null_pointer(comm, function, "flag");
  // `out` points to a pointer, of whatever type the program has it.
  auto** const value = static_cast<void**>(out);
  int* predefined;
  if (predefined_attribute(keyval, &predefined)) {
    *flag = predefined != nullptr ? 1 : 0;
    if (predefined != nullptr) *value = predefined;
    return MPI_SUCCESS;
  }
  const Keyval* const found = find_keyval(keyval, KeyvalOwner::kComm);
  if (found == nullptr) return bad_keyval(comm, function, keyval);
  *flag = get_attribute(*comm, *found, value) ? 1 : 0;
  return MPI_SUCCESS;
}

int remove(MPI_Comm handle, int keyval, const char* function) noexcept {
  const BigGuard guard;
  Comm* const comm = find_comm(handle);
  if (comm == nullptr) return bad_comm(function, "comm", handle);
  int* unused;
  if (predefined_attribute(keyval, &unused))
    return raise(comm, MPI_ERR_KEYVAL, function,
                 "argument `keyval` is %d, whose value only the library sets", keyval);
  Keyval* const found = find_keyval(keyval, KeyvalOwner::kComm);
  if (found == nullptr) return bad_keyval(comm, function, keyval);
  return tell_callback(comm, function, delete_attribute(*comm, *found));
}

}  // namespace
}  // namespace vmpi

using namespace vmpi;

VMPI_ENTRY(int, MPI_Comm_create_keyval,
           (MPI_Comm_copy_attr_function * comm_copy_attr_fn,
            MPI_Comm_delete_attr_function* comm_delete_attr_fn, int* comm_keyval,
            void* extra_state)) {
  return create_for_comm(comm_copy_attr_fn, comm_delete_attr_fn, comm_keyval, extra_state,
                         "MPI_Comm_create_keyval");
}

VMPI_ENTRY(int, MPI_Comm_free_keyval, (int* comm_keyval)) {
  return vmpi::free(KeyvalOwner::kComm, comm_keyval, "MPI_Comm_free_keyval");
}

VMPI_ENTRY(int, MPI_Comm_set_attr, (MPI_Comm comm, int comm_keyval, void* attribute_val)) {
  return put(comm, comm_keyval, attribute_val, "MPI_Comm_set_attr");
}

VMPI_ENTRY(int, MPI_Comm_get_attr,
           (MPI_Comm comm, int comm_keyval, void* attribute_val, int* flag)) {
  return get(comm, comm_keyval, attribute_val, flag, "MPI_Comm_get_attr");
}

VMPI_ENTRY(int, MPI_Comm_delete_attr, (MPI_Comm comm, int comm_keyval)) {
  return vmpi::remove(comm, comm_keyval, "MPI_Comm_delete_attr");
}

VMPI_ENTRY(int, MPI_Keyval_create,
           (MPI_Copy_function * copy_fn, MPI_Delete_function* delete_fn, int* keyval,
            void* extra_state)) {
  return create_for_comm(copy_fn, delete_fn, keyval, extra_state, "MPI_Keyval_create");
}

VMPI_ENTRY(int, MPI_Keyval_free, (int* keyval)) {
  return vmpi::free(KeyvalOwner::kComm, keyval, "MPI_Keyval_free");
}

VMPI_ENTRY(int, MPI_Attr_put, (MPI_Comm comm, int keyval, void* attribute_val)) {
  return put(comm, keyval, attribute_val, "MPI_Attr_put");
}

VMPI_ENTRY(int, MPI_Attr_get, (MPI_Comm comm, int keyval, void* attribute_val, int* flag)) {
  return get(comm, keyval, attribute_val, flag, "MPI_Attr_get");
}

VMPI_ENTRY(int, MPI_Attr_delete, (MPI_Comm comm, int keyval)) {
  return vmpi::remove(comm, keyval, "MPI_Attr_delete");
}

VMPI_ENTRY(int, MPI_Type_create_keyval,
           (MPI_Type_copy_attr_function * type_copy_attr_fn,
            MPI_Type_delete_attr_function* type_delete_attr_fn, int* type_keyval,
            void* extra_state)) {
  CopyFunction copy = {};
  copy.type = type_copy_attr_fn;
  DeleteFunction remove = {};
  remove.type = type_delete_attr_fn;
  return create(KeyvalOwner::kDatatype, copy, remove, type_keyval, extra_state,
                "MPI_Type_create_keyval");
}

VMPI_ENTRY(int, MPI_Type_free_keyval, (int* type_keyval)) {
  return vmpi::free(KeyvalOwner::kDatatype, type_keyval, "MPI_Type_free_keyval");
}

VMPI_ENTRY(int, MPI_Type_set_attr, (MPI_Datatype datatype, int type_keyval, void* attribute_val)) {
  static constexpr const char* kName = "MPI_Type_set_attr";
  const BigGuard guard;
  Datatype* const type = find_datatype(datatype);
  if (type == nullptr) return bad_type(kName, datatype);
  Keyval* const keyval = find_keyval(type_keyval, KeyvalOwner::kDatatype);
  if (keyval == nullptr) return bad_keyval(nullptr, kName, type_keyval);
  return tell_callback(nullptr, kName, set_attribute(*type, *keyval, attribute_val));
}

VMPI_ENTRY(int, MPI_Type_get_attr,
           (MPI_Datatype datatype, int type_keyval, void* attribute_val, int* flag)) {
  static constexpr const char* kName = "MPI_Type_get_attr";
  const BigGuard guard;
  const Datatype* const type = find_datatype(datatype);
  if (type == nullptr) return bad_type(kName, datatype);
  if (attribute_val == nullptr) return null_pointer(nullptr, kName, "attribute_val");
  if (flag == nullptr) return null_pointer(nullptr, kName, "flag");
  const Keyval* const keyval = find_keyval(type_keyval, KeyvalOwner::kDatatype);
  if (keyval == nullptr) return bad_keyval(nullptr, kName, type_keyval);
  *flag = get_attribute(*type, *keyval, static_cast<void**>(attribute_val)) ? 1 : 0;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Type_delete_attr, (MPI_Datatype datatype, int type_keyval)) {
  static constexpr const char* kName = "MPI_Type_delete_attr";
  const BigGuard guard;
  Datatype* const type = find_datatype(datatype);
  if (type == nullptr) return bad_type(kName, datatype);
  Keyval* const keyval = find_keyval(type_keyval, KeyvalOwner::kDatatype);
  if (keyval == nullptr) return bad_keyval(nullptr, kName, type_keyval);
  return tell_callback(nullptr, kName, delete_attribute(*type, *keyval));
}
