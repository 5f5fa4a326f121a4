// SPDX-License-Identifier: BSD-2-Clause
// Error handlers of communicators; error classes, codes and texts (MPI 5.0 chapter 9).
#include <cstring>

#include "mpi_shim/api/datatype_arguments.hpp"
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/comm.hpp"
#include "mpi_shim/core/errors.hpp"

namespace vmpi {
namespace {

[[nodiscard]] bool is_predefined(MPI_Errhandler handle) noexcept {
  return handle == MPI_ERRORS_ARE_FATAL || handle == MPI_ERRORS_ABORT ||
         handle == MPI_ERRORS_RETURN;
}

int refuse_comm(const char* function, MPI_Comm handle) noexcept {
  if (handle == MPI_COMM_NULL)
    return raise(nullptr, MPI_ERR_COMM, function, "comm is MPI_COMM_NULL");
  return raise(nullptr, MPI_ERR_COMM, function, "comm is %p, which is no communicator or was freed",
               static_cast<void*>(handle));
}

int refuse_code(const char* function, int code) noexcept {
  return raise(nullptr, MPI_ERR_ARG, function, "argument `errorcode` is %d, which is no error code",
               code);
}

int create(const char* function, MPI_Comm_errhandler_function* user, MPI_Errhandler* out) noexcept {
  BigGuard guard;
  if (user == nullptr)
    return raise(nullptr, MPI_ERR_ARG, function, "comm_errhandler_fn is a null pointer");
  if (const int error = check_not_null(function, "errhandler", out)) return error;
  const ErrorHandler* const made = make_error_handler(user);
  if (made == nullptr)
    return raise(nullptr, MPI_ERR_NO_MEM, function, "there is no memory for the handler");
  *out = reinterpret_cast<MPI_Errhandler>(static_cast<std::uintptr_t>(made->handle));
  return MPI_SUCCESS;
}

int set(const char* function, MPI_Comm handle, MPI_Errhandler errhandler) noexcept {
  BigGuard guard;
  Comm* const comm = find_comm(handle);
  if (comm == nullptr) return refuse_comm(function, handle);
  if (!is_predefined(errhandler) && find_error_handler(errhandler) == nullptr)
    return raise(comm, MPI_ERR_ERRHANDLER, function,
                 "errhandler is %p, which is no error handler or was freed",
                 static_cast<void*>(errhandler));
  comm->error_handler = number_of(errhandler);
  return MPI_SUCCESS;
}

int get(const char* function, MPI_Comm handle, MPI_Errhandler* out) noexcept {
  BigGuard guard;
  const Comm* const comm = find_comm(handle);
  if (comm == nullptr) return refuse_comm(function, handle);
  if (const int error = check_not_null(function, "errhandler", out)) return error;
  std::uint32_t number = comm->error_handler;
  if (number == 0) number = number_of(MPI_ERRORS_ARE_FATAL);
  if (ErrorHandler* const mine = find_error_handler_by_number(number)) ++mine->program_handles;
  *out = reinterpret_cast<MPI_Errhandler>(static_cast<std::uintptr_t>(number));
  return MPI_SUCCESS;
}

}  // namespace
}  // namespace vmpi

using namespace vmpi;

VMPI_ENTRY(int, MPI_Comm_create_errhandler,
           (MPI_Comm_errhandler_function * comm_errhandler_fn, MPI_Errhandler* errhandler)) {
  return create("MPI_Comm_create_errhandler", comm_errhandler_fn, errhandler);
}
VMPI_ENTRY(int, MPI_Errhandler_create,
           (MPI_Handler_function * handler_fn, MPI_Errhandler* errhandler)) {
  return create("MPI_Errhandler_create", handler_fn, errhandler);
}
VMPI_ENTRY(int, MPI_Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler errhandler)) {
  return set("MPI_Comm_set_errhandler", comm, errhandler);
}
VMPI_ENTRY(int, MPI_Errhandler_set, (MPI_Comm comm, MPI_Errhandler errhandler)) {
  return set("MPI_Errhandler_set", comm, errhandler);
}
VMPI_ENTRY(int, MPI_Comm_get_errhandler, (MPI_Comm comm, MPI_Errhandler* errhandler)) {
  return get("MPI_Comm_get_errhandler", comm, errhandler);
}
VMPI_ENTRY(int, MPI_Errhandler_get, (MPI_Comm comm, MPI_Errhandler* errhandler)) {
  return get("MPI_Errhandler_get", comm, errhandler);
}

VMPI_ENTRY(int, MPI_Comm_call_errhandler, (MPI_Comm comm, int errorcode)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Comm_call_errhandler";
  Comm* const found = find_comm(comm);
  if (found == nullptr) return refuse_comm(kName, comm);
  if (text_of(errorcode) == nullptr) return refuse_code(kName, errorcode);
  (void)raise(found, errorcode, kName, "the program reports an error");
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Errhandler_free, (MPI_Errhandler * errhandler)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Errhandler_free";
  if (const int error = check_not_null(kName, "errhandler", errhandler)) return error;
  // A predefined one that MPI_Comm_get_errhandler gave may be handed back.
  if (!is_predefined(*errhandler)) {
    ErrorHandler* const found = find_error_handler(*errhandler);
    if (found == nullptr)
      return raise(nullptr, MPI_ERR_ERRHANDLER, kName,
                   "errhandler is %p, which is no error handler or was freed",
                   static_cast<void*>(*errhandler));
    --found->program_handles;
  }
  *errhandler = MPI_ERRHANDLER_NULL;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Error_string, (int errorcode, char* string, int* resultlen)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Error_string";
  if (const int error = check_not_null(kName, "string", string)) return error;
  if (const int error = check_not_null(kName, "resultlen", resultlen)) return error;
  const char* const text = text_of(errorcode);
  if (text == nullptr) return refuse_code(kName, errorcode);
  const std::size_t length = std::strlen(text);  // below MPI_MAX_ERROR_STRING
  std::memcpy(string, text, length + 1);
  *resultlen = static_cast<int>(length);
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Error_class, (int errorcode, int* errorclass)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Error_class";
  if (const int error = check_not_null(kName, "errorclass", errorclass)) return error;
  if (text_of(errorcode) == nullptr) return refuse_code(kName, errorcode);
  *errorclass = class_of(errorcode);
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Add_error_class, (int* errorclass)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Add_error_class";
  if (const int error = check_not_null(kName, "errorclass", errorclass)) return error;
  const int made = add_error_class();
  if (made == 0) return raise(nullptr, MPI_ERR_NO_MEM, kName, "there is no memory for it");
  *errorclass = made;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Add_error_code, (int errorclass, int* errorcode)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Add_error_code";
  if (const int error = check_not_null(kName, "errorcode", errorcode)) return error;
  if (text_of(errorclass) == nullptr || class_of(errorclass) != errorclass)
    return raise(nullptr, MPI_ERR_ARG, kName,
                 "argument `errorclass` is %d, which is no error class", errorclass);
  const int made = add_error_code(errorclass);
  if (made == 0) return raise(nullptr, MPI_ERR_NO_MEM, kName, "there is no memory for it");
  *errorcode = made;
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Add_error_string, (int errorcode, const char* string)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Add_error_string";
  if (const int error = check_not_null(kName, "string", string)) return error;
  const int error = set_error_text(errorcode, string);
  if (error == MPI_SUCCESS) return MPI_SUCCESS;
  return raise(
      nullptr, error, kName,
      "argument `errorcode` is %d, which is no code of the program's, or there is no memory",
      errorcode);
}

VMPI_ENTRY(int, MPI_Remove_error_class, (int errorclass)) {
  BigGuard guard;
  const int error = remove_error(errorclass, true);
  if (error == MPI_SUCCESS) return MPI_SUCCESS;
  return raise(nullptr, error, "MPI_Remove_error_class",
               "argument `errorclass` is %d, which is no class of the program's, or has codes",
               errorclass);
}
VMPI_ENTRY(int, MPI_Remove_error_code, (int errorcode)) {
  BigGuard guard;
  const int error = remove_error(errorcode, false);
  if (error == MPI_SUCCESS) return MPI_SUCCESS;
  return raise(nullptr, error, "MPI_Remove_error_code",
               "argument `errorcode` is %d, which is no code of the program's", errorcode);
}
VMPI_ENTRY(int, MPI_Remove_error_string, (int errorcode)) {
  BigGuard guard;
  const int error = set_error_text(errorcode, nullptr);
  if (error == MPI_SUCCESS) return MPI_SUCCESS;
  return raise(nullptr, error, "MPI_Remove_error_string",
               "argument `errorcode` is %d, which is no code of the program's", errorcode);
}
