// SPDX-License-Identifier: BSD-2-Clause
// Sends and receives (MPI 5.0 sections 3.2 to 3.7, 3.10).
#include <cstdlib>

#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/api/message_arguments.hpp"
#include "mpi_shim/core/at_once.hpp"
#include "mpi_shim/core/buffered.hpp"
#include "mpi_shim/core/requests.hpp"

namespace {

using vmpi::BigGuard;
using vmpi::MessageArguments;
using vmpi::Request;
using vmpi::SendMode;

[[nodiscard]] int send_with_buffer(const Request& request, const char* function) noexcept {
  if (request.peer == MPI_PROC_NULL) return MPI_SUCCESS;
  const int error = vmpi::send_buffered(request);
  if (error == MPI_ERR_BUFFER)
    return vmpi::raise(request.comm, error, function,
                       "the message of %lld bytes and the %d of MPI_BSEND_OVERHEAD do not fit into "
                       "what is free of the %llu bytes that MPI_Buffer_attach gave",
                       static_cast<long long>(request.count * request.type->size),
                       MPI_BSEND_OVERHEAD, static_cast<unsigned long long>(vmpi::size_of_buffer()));
  return vmpi::raise_for(request, error, function);
}

int send(const MessageArguments& arguments, SendMode mode) noexcept {
  BigGuard guard;
  Request request;
  request.is_waited_for = true;
  int error = resolve_send(arguments, mode, request);
  if (error != MPI_SUCCESS) return error;
  if (send_at_once(request)) return MPI_SUCCESS;
  if (mode == SendMode::kBuffered) return send_with_buffer(request, arguments.function);
  error = begin_send(request);
  if (error == MPI_SUCCESS) error = wait_for(request);
  return raise_for(request, error, arguments.function);
}

[[nodiscard]] int null_request(vmpi::Comm* comm, const char* function) noexcept {
  return vmpi::raise(comm, MPI_ERR_ARG, function, "argument `request` is a null pointer");
}

int send_and_receive(Request& outgoing, Request& incoming, MPI_Status* status,
                     const char* function) noexcept {
  outgoing.is_waited_for = incoming.is_waited_for = true;
  exchange(outgoing, incoming);
  write_status(incoming, status);
  const Request& told = outgoing.error != MPI_SUCCESS ? outgoing : incoming;
  return raise_for(told, told.error, function);
}

int start_send(const MessageArguments& arguments, SendMode mode, MPI_Request* out) noexcept {
  BigGuard guard;
  Request asked;
  int error = resolve_send(arguments, mode, asked);
  if (error != MPI_SUCCESS) return error;
  if (out == nullptr) return null_request(asked.comm, arguments.function);
  if (send_at_once(asked)) {
    *out = vmpi::sent_request();
    return MPI_SUCCESS;
  }
  Request* const request = vmpi::make_request(asked);
  if (request == nullptr) return raise_for(asked, MPI_ERR_NO_MEM, arguments.function);
  if (mode == SendMode::kBuffered) {
    error = send_with_buffer(*request, arguments.function);
    request->kind = Request::Kind::kDone;
    request->is_active = true;
  } else {
    error = raise_for(*request, begin_send(*request), arguments.function);
  }
  if (error != MPI_SUCCESS) {
    release_request(*request);
    return error;
  }
  *out = handle_of(*request);
  return MPI_SUCCESS;
}

}  // namespace

VMPI_ENTRY(int, MPI_Send,
           (const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)) {
  return send({"MPI_Send", buf, count, datatype, dest, tag, comm}, SendMode::kStandard);
}

VMPI_ENTRY(int, MPI_Ssend,
           (const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)) {
  return send({"MPI_Ssend", buf, count, datatype, dest, tag, comm}, SendMode::kSynchronous);
}

VMPI_ENTRY(int, MPI_Bsend,
           (const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)) {
  return send({"MPI_Bsend", buf, count, datatype, dest, tag, comm}, SendMode::kBuffered);
}

VMPI_ENTRY(int, MPI_Rsend,
           (const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)) {
  return send({"MPI_Rsend", buf, count, datatype, dest, tag, comm}, SendMode::kReady);
}

VMPI_ENTRY(int, MPI_Isend,
           (const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
            MPI_Request* request)) {
  return start_send({"MPI_Isend", buf, count, datatype, dest, tag, comm}, SendMode::kStandard,
                    request);
}

VMPI_ENTRY(int, MPI_Issend,
           (const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
            MPI_Request* request)) {
  return start_send({"MPI_Issend", buf, count, datatype, dest, tag, comm}, SendMode::kSynchronous,
                    request);
}

VMPI_ENTRY(int, MPI_Ibsend,
           (const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
            MPI_Request* request)) {
  return start_send({"MPI_Ibsend", buf, count, datatype, dest, tag, comm}, SendMode::kBuffered,
                    request);
}

VMPI_ENTRY(int, MPI_Irsend,
           (const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
            MPI_Request* request)) {
  return start_send({"MPI_Irsend", buf, count, datatype, dest, tag, comm}, SendMode::kReady,
                    request);
}

VMPI_ENTRY(int, MPI_Recv,
           (void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
            MPI_Status* status)) {
  BigGuard guard;
  Request request;
  request.is_waited_for = true;
  int error = resolve_receive({"MPI_Recv", buf, count, datatype, source, tag, comm}, request);
  if (error != MPI_SUCCESS) return error;
  if (receive_at_once(request, vmpi::Looks::kMany)) {
    write_status(request, status);
    return MPI_SUCCESS;
  }
  begin_receive(request);
  error = wait_for(request);
  write_status(request, status);
  return raise_for(request, error, "MPI_Recv");
}

VMPI_ENTRY(int, MPI_Irecv,
           (void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
            MPI_Request* request)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Irecv";
  // Its fields are set where they stay.
  Request* const made = vmpi::make_request();
  Request unmade;
  Request& asked = made != nullptr ? *made : unmade;
  int error = resolve_receive({kName, buf, count, datatype, source, tag, comm}, asked);
  if (error == MPI_SUCCESS && request == nullptr) error = null_request(asked.comm, kName);
  if (error == MPI_SUCCESS && made == nullptr) error = raise_for(asked, MPI_ERR_NO_MEM, kName);
  if (error != MPI_SUCCESS) {
    if (made != nullptr) drop_request(*made);
    return error;
  }
  hold(*made);
  made->is_active = true;
  if (!receive_at_once(*made, vmpi::Looks::kOne)) begin_receive(*made);
  *request = handle_of(*made);
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Sendrecv,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,
            void* recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,
            MPI_Comm comm, MPI_Status* status)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Sendrecv";
  Request outgoing;
  Request incoming;
  const int error = resolve_both(
      {kName, sendbuf, sendcount, sendtype, dest, sendtag, comm, &vmpi::kSentNames},
      {kName, recvbuf, recvcount, recvtype, source, recvtag, comm, &vmpi::kReceivedNames}, outgoing,
      incoming);
  if (error != MPI_SUCCESS) return error;
  return send_and_receive(outgoing, incoming, status, kName);
}

VMPI_ENTRY(int, MPI_Sendrecv_replace,
           (void* buf, int count, MPI_Datatype datatype, int dest, int sendtag, int source,
            int recvtag, MPI_Comm comm, MPI_Status* status)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Sendrecv_replace";
  Request outgoing;
  Request incoming;
  int error =
      resolve_both({kName, buf, count, datatype, dest, sendtag, comm, &vmpi::kReplacedNames},
                   {kName, buf, count, datatype, source, recvtag, comm, &vmpi::kReplacementNames},
                   outgoing, incoming);
  if (error != MPI_SUCCESS) return error;
  // What goes is put aside first, since what comes takes its place.
  const auto bytes = static_cast<std::size_t>(outgoing.count * outgoing.type->size);
  void* const aside = std::malloc(bytes + 1);
  if (aside == nullptr) return raise_for(outgoing, MPI_ERR_NO_MEM, kName);
  if (bytes != 0) (void)vmpi::pack(*outgoing.type, count, buf, 0, aside, bytes);
  outgoing.buffer = aside;
  outgoing.count = static_cast<std::int64_t>(bytes);
  outgoing.type = vmpi::find_datatype(MPI_BYTE);
  error = send_and_receive(outgoing, incoming, status, kName);
  std::free(aside);
  return error;
}
