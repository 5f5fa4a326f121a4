// SPDX-License-Identifier: BSD-2-Clause
// Pack and unpack (MPI 5.0 sections 5.2 and 5.3). Packed bytes are those of the data, one after the
// other; there is no header.
#include <climits>
#include <cstring>

#include "mpi_shim/api/datatype_arguments.hpp"
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/checked.hpp"
#include "mpi_shim/core/comm.hpp"
#include "mpi_shim/core/external.hpp"

namespace vmpi {
namespace {

/// What all of them are called with, and what they call it.
struct Call {
  const char* function;
  const char* count_name = "incount";
  const char* data_name = "inbuf";
  const char* packed_name = "outbuf";
  const char* room_name = "outsize";
  bool is_external = false;
  Comm* comm = nullptr;  ///< null: of the external forms
  Datatype* type = nullptr;
  std::int64_t bytes = 0;  ///< packed
};

[[nodiscard]] int look_at(Call& call, MPI_Comm comm, const char* representation, std::int64_t count,
                          MPI_Datatype handle) noexcept {
  if (call.is_external) {
    if (representation == nullptr || std::strcmp(representation, "external32") != 0)
      return raise(nullptr, MPI_ERR_UNSUPPORTED_DATAREP, call.function,
                   "datarep is not \"external32\"");
  } else {
    call.comm = find_comm(comm);
    if (call.comm == nullptr)
      return raise(nullptr, MPI_ERR_COMM, call.function,
                   "comm is %p, which is no communicator or was freed", static_cast<void*>(comm));
  }
  if (count < 0)
    return raise(call.comm, MPI_ERR_COUNT, call.function, "argument `%s` is %lld", call.count_name,
                 static_cast<long long>(count));
  if (const int error = check_type(call.comm, call.function, "datatype", handle, call.type))
    return error;
  Checked checked;
  call.bytes =
      call.is_external ? external_size(*call.type, count) : checked.product(call.type->size, count);
  if (call.bytes >= 0 && !checked.overflowed()) return 0;
  return raise(call.comm, MPI_ERR_VALUE_TOO_LARGE, call.function,
               "%lld elements have more than 2^63 bytes", static_cast<long long>(count));
}

/// `whole` bytes with a position in them, of which `call.bytes` are left.
template <class T>
[[nodiscard]] int check_buffers(const Call& call, const void* data, const void* packed, T whole,
                                const T* position) noexcept {
  if (position == nullptr || (packed == nullptr && call.bytes != 0))
    return raise(call.comm, MPI_ERR_ARG, call.function, "argument `%s` is a null pointer",
                 position == nullptr ? "position" : call.packed_name);
  if (data == nullptr && call.bytes != 0 && call.type->is_predefined)
    return raise(call.comm, MPI_ERR_BUFFER, call.function, "argument `%s` is a null pointer",
                 call.data_name);
  if (whole < 0 || *position < 0 || *position > whole)
    return raise(call.comm, MPI_ERR_ARG, call.function, "`position` is %lld, `%s` is %lld",
                 static_cast<long long>(*position), call.room_name, static_cast<long long>(whole));
  if (call.bytes <= whole - *position) return 0;
  return raise(call.comm, MPI_ERR_TRUNCATE, call.function,
               "%lld bytes are asked for: `position` is %lld, `%s` is %lld",
               static_cast<long long>(call.bytes), static_cast<long long>(*position),
               call.room_name, static_cast<long long>(whole));
}

[[nodiscard]] int refuse_number(const Call& call) noexcept {
  return raise(call.comm, MPI_ERR_CONVERSION, call.function,
               "a number does not fit its size in external32");
}

template <class T>
int pack_all(Call call, MPI_Comm comm, const char* representation, const void* in,
             std::int64_t count, MPI_Datatype handle, void* out, T whole, T* position) noexcept {
  BigGuard guard;
  if (const int error = look_at(call, comm, representation, count, handle)) return error;
  if (const int error = check_buffers(call, in, out, whole, position)) return error;
  unsigned char* const at = static_cast<unsigned char*>(out) + (out != nullptr ? *position : 0);
  if (!call.is_external)
    (void)pack(*call.type, count, in, 0, at, static_cast<std::size_t>(call.bytes));
  else if (pack_external(*call.type, count, in, at) != MPI_SUCCESS)
    return refuse_number(call);
  *position = static_cast<T>(*position + call.bytes);
  return MPI_SUCCESS;
}

template <class T>
int unpack_all(Call call, MPI_Comm comm, const char* representation, const void* in, T whole,
               T* position, void* out, std::int64_t count, MPI_Datatype handle) noexcept {
  BigGuard guard;
  call.count_name = "outcount";
  call.data_name = "outbuf";
  call.packed_name = "inbuf";
  call.room_name = "insize";
  if (const int error = look_at(call, comm, representation, count, handle)) return error;
  if (const int error = check_buffers(call, out, in, whole, position)) return error;
  const unsigned char* const at =
      static_cast<const unsigned char*>(in) + (in != nullptr ? *position : 0);
  if (!call.is_external)
    unpack(*call.type, count, out, 0, at, static_cast<std::size_t>(call.bytes));
  else if (unpack_external(*call.type, count, out, at) != MPI_SUCCESS)
    return refuse_number(call);
  *position = static_cast<T>(*position + call.bytes);
  return MPI_SUCCESS;
}

int size_of_packed(Call call, MPI_Comm comm, const char* representation, std::int64_t count,
                   MPI_Datatype handle, std::int64_t* size) noexcept {
  BigGuard guard;
  if (const int error = look_at(call, comm, representation, count, handle)) return error;
  if (size == nullptr)
    return raise(call.comm, MPI_ERR_ARG, call.function, "size is a null pointer");
  *size = call.bytes;
  return MPI_SUCCESS;
}

[[nodiscard]] Call plain(const char* function) noexcept { return {.function = function}; }
[[nodiscard]] Call external(const char* function) noexcept {
  return {.function = function, .is_external = true};
}

}  // namespace
}  // namespace vmpi

using namespace vmpi;

VMPI_ENTRY(int, MPI_Pack,
           (const void* inbuf, int incount, MPI_Datatype datatype, void* outbuf, int outsize,
            int* position, MPI_Comm comm)) {
  return pack_all(plain("MPI_Pack"), comm, nullptr, inbuf, incount, datatype, outbuf, outsize,
                  position);
}
VMPI_ENTRY(int, MPI_Pack_c,
           (const void* inbuf, MPI_Count incount, MPI_Datatype datatype, void* outbuf,
            MPI_Count outsize, MPI_Count* position, MPI_Comm comm)) {
  return pack_all(plain("MPI_Pack_c"), comm, nullptr, inbuf, incount, datatype, outbuf, outsize,
                  position);
}
VMPI_ENTRY(int, MPI_Unpack,
           (const void* inbuf, int insize, int* position, void* outbuf, int outcount,
            MPI_Datatype datatype, MPI_Comm comm)) {
  return unpack_all(plain("MPI_Unpack"), comm, nullptr, inbuf, insize, position, outbuf, outcount,
                    datatype);
}
VMPI_ENTRY(int, MPI_Unpack_c,
           (const void* inbuf, MPI_Count insize, MPI_Count* position, void* outbuf,
            MPI_Count outcount, MPI_Datatype datatype, MPI_Comm comm)) {
  return unpack_all(plain("MPI_Unpack_c"), comm, nullptr, inbuf, insize, position, outbuf, outcount,
                    datatype);
}
VMPI_ENTRY(int, MPI_Pack_size, (int incount, MPI_Datatype datatype, MPI_Comm comm, int* size)) {
  std::int64_t bytes = 0;
  const int error = size_of_packed(plain("MPI_Pack_size"), comm, nullptr, incount, datatype,
                                   size != nullptr ? &bytes : nullptr);
  if (error == MPI_SUCCESS) *size = bytes > INT_MAX ? MPI_UNDEFINED : static_cast<int>(bytes);
  return error;
}
VMPI_ENTRY(int, MPI_Pack_size_c,
           (MPI_Count incount, MPI_Datatype datatype, MPI_Comm comm, MPI_Count* size)) {
  return size_of_packed(plain("MPI_Pack_size_c"), comm, nullptr, incount, datatype, size);
}

VMPI_ENTRY(int, MPI_Pack_external,
           (const char datarep[], const void* inbuf, int incount, MPI_Datatype datatype,
            void* outbuf, MPI_Aint outsize, MPI_Aint* position)) {
  return pack_all(external("MPI_Pack_external"), MPI_COMM_NULL, datarep, inbuf, incount, datatype,
                  outbuf, outsize, position);
}
VMPI_ENTRY(int, MPI_Pack_external_c,
           (const char datarep[], const void* inbuf, MPI_Count incount, MPI_Datatype datatype,
            void* outbuf, MPI_Count outsize, MPI_Count* position)) {
  return pack_all(external("MPI_Pack_external_c"), MPI_COMM_NULL, datarep, inbuf, incount, datatype,
                  outbuf, outsize, position);
}
VMPI_ENTRY(int, MPI_Unpack_external,
           (const char datarep[], const void* inbuf, MPI_Aint insize, MPI_Aint* position,
            void* outbuf, int outcount, MPI_Datatype datatype)) {
  return unpack_all(external("MPI_Unpack_external"), MPI_COMM_NULL, datarep, inbuf, insize,
                    position, outbuf, outcount, datatype);
}
VMPI_ENTRY(int, MPI_Unpack_external_c,
           (const char datarep[], const void* inbuf, MPI_Count insize, MPI_Count* position,
            void* outbuf, MPI_Count outcount, MPI_Datatype datatype)) {
  return unpack_all(external("MPI_Unpack_external_c"), MPI_COMM_NULL, datarep, inbuf, insize,
                    position, outbuf, outcount, datatype);
}
VMPI_ENTRY(int, MPI_Pack_external_size,
           (const char datarep[], int incount, MPI_Datatype datatype, MPI_Aint* size)) {
  return size_of_packed(external("MPI_Pack_external_size"), MPI_COMM_NULL, datarep, incount,
                        datatype, size);
}
VMPI_ENTRY(int, MPI_Pack_external_size_c,
           (const char datarep[], MPI_Count incount, MPI_Datatype datatype, MPI_Count* size)) {
  return size_of_packed(external("MPI_Pack_external_size_c"), MPI_COMM_NULL, datarep, incount,
                        datatype, size);
}
