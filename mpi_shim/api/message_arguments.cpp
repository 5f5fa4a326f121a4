// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/api/message_arguments.hpp"

#include <climits>

#include "mpi_shim/api/comm_arguments.hpp"
#include "mpi_shim/core/world.hpp"

namespace vmpi {
namespace {

[[nodiscard]] unsigned long long told(const void* handle) noexcept {
  return static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(handle));
}

[[nodiscard, gnu::cold]] int bad_type(Comm* comm, const MessageArguments& arguments) noexcept {
  const char* const name = arguments.names->datatype;
  if (arguments.datatype == MPI_DATATYPE_NULL)
    return raise(comm, MPI_ERR_TYPE, arguments.function, "argument `%s` is MPI_DATATYPE_NULL",
                 name);
  if (find_datatype(arguments.datatype) != nullptr)
    return raise(comm, MPI_ERR_TYPE, arguments.function,
                 "argument `%s` was not committed: call MPI_Type_commit first", name);
  return raise(comm, MPI_ERR_TYPE, arguments.function,
               "argument `%s` is no datatype (0x%llx): it was freed, or never made", name,
               told(arguments.datatype));
}

[[nodiscard]] int check_peer(const char* function, Comm& comm, int peer,
                             const char* name) noexcept {
  if (peer == MPI_PROC_NULL || (peer >= 0 && peer < comm.peers().size())) return MPI_SUCCESS;
  return raise(&comm, MPI_ERR_RANK, function, "argument `%s` is %d, the communicator has %d ranks",
               name, peer, comm.peers().size());
}

}  // namespace

Comm* resolve_comm(const char* function, MPI_Comm handle, int& error) noexcept {
  Comm* const found = find_comm(handle);
  if (found != nullptr) return found;
  if (world.stage == Stage::kBefore)
    error = raise(nullptr, MPI_ERR_OTHER, function, "MPI_Init was not called yet");
  else if (world.stage == Stage::kFinalized)
    error = raise(nullptr, MPI_ERR_OTHER, function, "MPI_Finalize was called before");
  else if (handle == MPI_COMM_NULL)
    error = raise(nullptr, MPI_ERR_COMM, function, "argument `comm` is MPI_COMM_NULL");
  else
    error = raise(nullptr, MPI_ERR_COMM, function,
                  "argument `comm` is no communicator (0x%llx): it was freed, or never made",
                  told(handle));
  return nullptr;
}

int resolve_data(const MessageArguments& arguments, Comm* comm, Request& out) noexcept {
  const char* const function = arguments.function;
  if (arguments.count < 0)
    return raise(comm, MPI_ERR_COUNT, function, "argument `%s` is %lld", arguments.names->count,
                 static_cast<long long>(arguments.count));
  Datatype* const type = find_datatype(arguments.datatype);
  if (type == nullptr || !type->is_committed) return bad_type(comm, arguments);
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(arguments.count, type->size, &bytes))
    return raise(comm, MPI_ERR_COUNT, function,
                 "argument `%s` is %lld: the message would have more than 2^63 bytes",
                 arguments.names->count, static_cast<long long>(arguments.count));
  if (arguments.buffer == nullptr && bytes != 0 && type->is_predefined)
    return raise(comm, MPI_ERR_BUFFER, function, "argument `%s` is a null pointer, `%s` is %lld",
                 arguments.names->buffer, arguments.names->count,
                 static_cast<long long>(arguments.count));
  out.buffer = const_cast<void*>(arguments.buffer);
  out.count = arguments.count;
  out.type = type;
  return MPI_SUCCESS;
}

int resolve_send(const MessageArguments& arguments, SendMode mode, Request& out) noexcept {
  int error = MPI_SUCCESS;
  Comm* const comm = resolve_comm(arguments.function, arguments.comm, error);
  if (comm == nullptr) return error;
  error = resolve_data(arguments, comm, out);
  if (error != MPI_SUCCESS) return error;
  error = check_peer(arguments.function, *comm, arguments.peer, "dest");
  if (error != MPI_SUCCESS) return error;
  if (arguments.tag < 0)
    return raise(comm, MPI_ERR_TAG, arguments.function,
                 "argument `%s` is %d, and a message's tag is from 0 to %d", arguments.names->tag,
                 arguments.tag, INT_MAX);
  out.comm = comm;
  out.peer = arguments.peer;
  out.tag = arguments.tag;
  out.mode = mode;
  return MPI_SUCCESS;
}

int check_source(const char* function, Comm& comm, int source, int tag,
                 const char* name_of_tag) noexcept {
  if (source != MPI_ANY_SOURCE) {
    const int error = check_peer(function, comm, source, "source");
    if (error != MPI_SUCCESS) return error;
  }
  if (tag < 0 && tag != MPI_ANY_TAG)
    return raise(&comm, MPI_ERR_TAG, function,
                 "argument `%s` is %d, and it is from 0 to %d or MPI_ANY_TAG", name_of_tag, tag,
                 INT_MAX);
  return MPI_SUCCESS;
}

int resolve_receive(const MessageArguments& arguments, Request& out) noexcept {
  int error = MPI_SUCCESS;
  Comm* const comm = resolve_comm(arguments.function, arguments.comm, error);
  if (comm == nullptr) return error;
  error = resolve_data(arguments, comm, out);
  if (error == MPI_SUCCESS)
    error = check_source(arguments.function, *comm, arguments.peer, arguments.tag,
                         arguments.names->tag);
  out.comm = comm;
  out.peer = arguments.peer;
  out.tag = arguments.tag;
  return error;
}

int resolve_both(const MessageArguments& sent, const MessageArguments& received, Request& outgoing,
                 Request& incoming) noexcept {
  const int error = resolve_send(sent, SendMode::kStandard, outgoing);
  return error != MPI_SUCCESS ? error : resolve_receive(received, incoming);
}

int raise_for(const Request& request, int error, const char* function) noexcept {
  if (error == MPI_SUCCESS) [[likely]]
    return error;
  Comm* const comm = request.comm;
  if (request.kind == Request::Kind::kSchedule && request.type == nullptr)
    return error == MPI_ERR_PROC_ABORTED
               ? raise_loss(*comm, function)
               : raise(comm, error, function, "a collective that was started failed: %s",
                       text_of(error));
  switch (error) {
    case MPI_ERR_TRUNCATE:
      return raise(
          comm, error, function,
          "the message of rank %d with tag %d is longer than the %lld bytes of its receive",
          request.source, request.received_tag,
          static_cast<long long>(request.count * request.type->size));
    case MPI_ERR_PROC_ABORTED:
      if (request.peer == MPI_ANY_SOURCE)
        return raise(comm, error, function, "a rank that might have sent is gone");
      return raise(comm, error, function, "rank %d of the communicator is gone", request.peer);
    case MPI_ERR_NO_MEM:
      return raise(comm, error, function, "there is no memory left for a message of %lld bytes",
                   request.type == nullptr
                       ? 0LL
                       : static_cast<long long>(request.count * request.type->size));
    default:
      return raise(comm, error, function, "the operation failed");
  }
}

}  // namespace vmpi
