// SPDX-License-Identifier: BSD-2-Clause
// A send and a receive as one nonblocking operation (MPI 5.0 section 3.11).
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/api/message_arguments.hpp"
#include "mpi_shim/coll/schedule.hpp"
#include "mpi_shim/core/requests.hpp"

using vmpi::BigGuard;
using vmpi::Request;

namespace {

/// Both messages as one request, which tells of the receive.
int start_both(Request& outgoing, const Request& incoming, bool is_replaced, MPI_Request* request,
               const char* function) noexcept {
  if (request == nullptr)
    return vmpi::raise(incoming.comm, MPI_ERR_ARG, function,
                       "argument `request` is a null pointer");
  vmpi::Schedule* const schedule = vmpi::make_program_schedule(*incoming.comm);
  Request* const made = schedule != nullptr ? vmpi::make_request(incoming) : nullptr;
  if (made == nullptr) {
    vmpi::destroy(schedule);
    return raise_for(incoming, MPI_ERR_NO_MEM, function);
  }
  if (is_replaced) {
    // What goes is put aside first, since what comes takes its place.
    const std::int64_t bytes = outgoing.count * outgoing.type->size;
    void* const aside = schedule->plan().bytes(bytes);
    if (aside != nullptr)
      (void)vmpi::pack(*outgoing.type, outgoing.count, outgoing.buffer, 0, aside,
                       static_cast<std::size_t>(bytes));
    outgoing.buffer = aside;
    outgoing.count = bytes;
    outgoing.type = vmpi::find_datatype(MPI_BYTE);
  }
  schedule->tell_of_receive();
  schedule->use_tag(incoming.tag);
  schedule->plan().receive(incoming.peer, {incoming.buffer, incoming.count, incoming.type});
  schedule->use_tag(outgoing.tag);
  schedule->plan().send(outgoing.peer, {outgoing.buffer, outgoing.count, outgoing.type});
  if (vmpi::start(schedule, *made) != MPI_SUCCESS) {
    vmpi::release_request(*made);
    return raise_for(incoming, MPI_ERR_NO_MEM, function);
  }
  *request = handle_of(*made);
  return MPI_SUCCESS;
}

}  // namespace

VMPI_ENTRY(int, MPI_Isendrecv,
           (const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,
            void* recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,
            MPI_Comm comm, MPI_Request* request)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Isendrecv";
  Request outgoing;
  Request incoming;
  const int error = resolve_both(
      {kName, sendbuf, sendcount, sendtype, dest, sendtag, comm, &vmpi::kSentNames},
      {kName, recvbuf, recvcount, recvtype, source, recvtag, comm, &vmpi::kReceivedNames}, outgoing,
      incoming);
  if (error != MPI_SUCCESS) return error;
  return start_both(outgoing, incoming, false, request, kName);
}

VMPI_ENTRY(int, MPI_Isendrecv_replace,
           (void* buf, int count, MPI_Datatype datatype, int dest, int sendtag, int source,
            int recvtag, MPI_Comm comm, MPI_Request* request)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Isendrecv_replace";
  Request outgoing;
  Request incoming;
  const int error =
      resolve_both({kName, buf, count, datatype, dest, sendtag, comm, &vmpi::kReplacedNames},
                   {kName, buf, count, datatype, source, recvtag, comm, &vmpi::kReplacementNames},
                   outgoing, incoming);
  if (error != MPI_SUCCESS) return error;
  return start_both(outgoing, incoming, true, request, kName);
}
