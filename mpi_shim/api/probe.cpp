// SPDX-License-Identifier: BSD-2-Clause
// Probes (MPI 5.0 section 3.8).
#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/api/message_arguments.hpp"
#include "mpi_shim/core/messages.hpp"
#include "mpi_shim/core/peers.hpp"
#include "mpi_shim/core/requests.hpp"
#include "mpi_shim/core/status.hpp"

namespace {

using vmpi::BigGuard;
using vmpi::Comm;
using vmpi::Message;
using vmpi::Request;

struct Search {
  const char* function;
  int source;
  int tag;
  MPI_Comm comm;
  bool is_taking;
  Comm* found_comm = nullptr;
  Message* message = nullptr;
  vmpi::Probed probed = {};
  bool is_found = false;
};

bool look(void* context) noexcept {
  Search& search = *static_cast<Search*>(context);
  search.is_found = vmpi::probe(*search.found_comm, vmpi::Plane::kProgram, search.source,
                                search.tag, search.probed, search.is_taking, &search.message);
  return search.is_found;
}

bool is_hopeless(const Search& search) noexcept {
  if (search.source == MPI_ANY_SOURCE) return vmpi::is_any_dead(*search.found_comm);
  return vmpi::is_dead(search.found_comm->peers().world_rank(search.source));
}

bool look_or_despair(void* context) noexcept {
  return look(context) || is_hopeless(*static_cast<Search*>(context));
}

void write(const vmpi::Probed& probed, MPI_Status* status) noexcept {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = probed.source;
  status->MPI_TAG = probed.tag;
  vmpi::set_bytes(*status, probed.bytes);
  vmpi::set_cancelled(*status, false);
}

MPI_Message handle_of(const Message& message) noexcept {
  return reinterpret_cast<MPI_Message>(static_cast<std::uintptr_t>(message.handle));
}

/// With `flag`: whether one is there now; without: waits for one.
int search_for(Search& search, int* flag, MPI_Message* message, MPI_Status* status) noexcept {
  int error = MPI_SUCCESS;
  search.found_comm = vmpi::resolve_comm(search.function, search.comm, error);
  if (search.found_comm == nullptr) return error;
  error = vmpi::check_source(search.function, *search.found_comm, search.source, search.tag);
  if (error != MPI_SUCCESS) return error;
  if (search.is_taking && message == nullptr)
    return vmpi::raise(search.found_comm, MPI_ERR_ARG, search.function,
                       "argument `message` is a null pointer");
  if (search.source == MPI_PROC_NULL) {
    search.probed = {MPI_PROC_NULL, MPI_ANY_TAG, 0};
    write(search.probed, status);
    if (flag != nullptr) *flag = 1;
    if (search.is_taking) *message = MPI_MESSAGE_NO_PROC;
    return MPI_SUCCESS;
  }
  if (flag == nullptr) {
    vmpi::wait_until(look_or_despair, &search);
  } else if (!look(&search)) {
    (void)vmpi::progress();
    (void)look(&search);
  }
  if (flag != nullptr) *flag = search.is_found ? 1 : 0;
  if (!search.is_found)
    return is_hopeless(search) ? vmpi::raise(search.found_comm, MPI_ERR_PROC_ABORTED,
                                             search.function, "a rank that might have sent is gone")
                               : MPI_SUCCESS;
  if (search.is_taking) {
    if (search.message == nullptr)
      return vmpi::raise(search.found_comm, MPI_ERR_NO_MEM, search.function,
                         "there is no memory left");
    retain(*search.found_comm);
    *message = handle_of(*search.message);
  }
  write(search.probed, status);
  return MPI_SUCCESS;
}

/// A matched message and where it goes. `*out` is null for MPI_MESSAGE_NO_PROC.
int resolve(const vmpi::MessageArguments& arguments, MPI_Message* handle, Request& asked,
            Message*& out) noexcept {
  const char* const function = arguments.function;
  if (handle == nullptr)
    return vmpi::raise(nullptr, MPI_ERR_ARG, function, "argument `message` is a null pointer");
  out = nullptr;
  if (*handle != MPI_MESSAGE_NO_PROC) {
    out = vmpi::messages.find(vmpi::number_of(*handle));
    if (out == nullptr)
      return vmpi::raise(
          nullptr, MPI_ERR_REQUEST, function,
          "argument `message` is no message (0x%llx): it was received, or never "
          "probed",
          static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(*handle)));
  }
  asked.comm = out != nullptr ? out->comm : vmpi::find_comm(MPI_COMM_SELF);
  asked.peer = out != nullptr ? out->message.envelope.source : MPI_PROC_NULL;
  asked.tag = out != nullptr ? out->message.envelope.tag : MPI_ANY_TAG;
  return vmpi::resolve_data(arguments, asked.comm, asked);
}

void begin(Request& request, Message* message) noexcept {
  if (message != nullptr)
    begin_matched_receive(request, *message);
  else
    begin_receive(request);
}

}  // namespace

VMPI_ENTRY(int, MPI_Probe, (int source, int tag, MPI_Comm comm, MPI_Status* status)) {
  BigGuard guard;
  Search search = {"MPI_Probe", source, tag, comm, false};
  return search_for(search, nullptr, nullptr, status);
}

VMPI_ENTRY(int, MPI_Iprobe, (int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status)) {
  BigGuard guard;
  if (flag == nullptr)
    return vmpi::raise(nullptr, MPI_ERR_ARG, "MPI_Iprobe", "argument `flag` is a null pointer");
  Search search = {"MPI_Iprobe", source, tag, comm, false};
  return search_for(search, flag, nullptr, status);
}

VMPI_ENTRY(int, MPI_Mprobe,
           (int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status)) {
  BigGuard guard;
  Search search = {"MPI_Mprobe", source, tag, comm, true};
  return search_for(search, nullptr, message, status);
}

VMPI_ENTRY(int, MPI_Improbe,
           (int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
            MPI_Status* status)) {
  BigGuard guard;
  if (flag == nullptr)
    return vmpi::raise(nullptr, MPI_ERR_ARG, "MPI_Improbe", "argument `flag` is a null pointer");
  Search search = {"MPI_Improbe", source, tag, comm, true};
  return search_for(search, flag, message, status);
}

VMPI_ENTRY(int, MPI_Mrecv,
           (void* buf, int count, MPI_Datatype datatype, MPI_Message* message,
            MPI_Status* status)) {
  BigGuard guard;
  Request request;
  Message* matched = nullptr;
  int error =
      resolve({"MPI_Mrecv", buf, count, datatype, 0, 0, MPI_COMM_NULL}, message, request, matched);
  if (error != MPI_SUCCESS) return error;
  *message = MPI_MESSAGE_NULL;
  begin(request, matched);
  error = wait_for(request);
  write_status(request, status);
  error = raise_for(request, error, "MPI_Mrecv");
  if (matched != nullptr) release(*request.comm);
  return error;
}

VMPI_ENTRY(int, MPI_Imrecv,
           (void* buf, int count, MPI_Datatype datatype, MPI_Message* message,
            MPI_Request* request)) {
  BigGuard guard;
  Request asked;
  Message* matched = nullptr;
  const int error =
      resolve({"MPI_Imrecv", buf, count, datatype, 0, 0, MPI_COMM_NULL}, message, asked, matched);
  if (error != MPI_SUCCESS) return error;
  if (request == nullptr)
    return vmpi::raise(asked.comm, MPI_ERR_ARG, "MPI_Imrecv",
                       "argument `request` is a null pointer");
  Request* const made = vmpi::make_request(asked);
  if (made == nullptr) return raise_for(asked, MPI_ERR_NO_MEM, "MPI_Imrecv");
  if (matched != nullptr) release(*asked.comm);  // the message's reference
  *message = MPI_MESSAGE_NULL;
  begin(*made, matched);
  *request = vmpi::handle_of(*made);
  return MPI_SUCCESS;
}
