// SPDX-License-Identifier: BSD-2-Clause
// Persistent requests (MPI 5.0 section 3.9), and those that the program completes (section 13.2).
#include <cstdlib>

#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/api/message_arguments.hpp"
#include "mpi_shim/api/request_list.hpp"
#include "mpi_shim/core/buffered.hpp"

namespace {

using vmpi::BigGuard;
using vmpi::MessageArguments;
using vmpi::Request;
using vmpi::SendMode;

int make_persistent(const MessageArguments& arguments, SendMode mode, bool is_send,
                    MPI_Request* out) noexcept {
  BigGuard guard;
  Request asked;
  const int error =
      is_send ? resolve_send(arguments, mode, asked) : resolve_receive(arguments, asked);
  if (error != MPI_SUCCESS) return error;
  if (out == nullptr)
    return vmpi::raise(asked.comm, MPI_ERR_ARG, arguments.function,
                       "argument `request` is a null pointer");
  Request* const made = vmpi::make_request(asked);
  if (made == nullptr) return raise_for(asked, MPI_ERR_NO_MEM, arguments.function);
  made->kind = is_send ? Request::Kind::kSend : Request::Kind::kReceive;
  made->is_persistent = true;
  *out = handle_of(*made);
  return MPI_SUCCESS;
}

int start(MPI_Request handle, const char* function) noexcept {
  Request* const request = handle == MPI_REQUEST_NULL ? nullptr : vmpi::find_request(handle);
  if (request == nullptr || !request->is_persistent)
    return vmpi::raise(nullptr, MPI_ERR_REQUEST, function,
                       "argument `request` is no persistent request (0x%llx)",
                       static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(handle)));
  if (request->is_active)
    return vmpi::raise(request->comm, MPI_ERR_REQUEST, function,
                       "argument `request` was started before and not waited for since");
  int error = MPI_SUCCESS;
  if (request->kind == Request::Kind::kReceive) {
    begin_receive(*request);
  } else if (request->mode == SendMode::kBuffered) {
    if (request->peer != MPI_PROC_NULL) error = vmpi::send_buffered(*request);
    request->error = MPI_SUCCESS;
    request->is_active = error == MPI_SUCCESS;
    request->is_complete = true;
  } else {
    error = begin_send(*request);
  }
  if (error != MPI_SUCCESS) request->is_active = false;
  if (error == MPI_ERR_BUFFER)
    return vmpi::raise(request->comm, error, function,
                       "the message does not fit into what is free of the buffer of "
                       "MPI_Buffer_attach");
  return raise_for(*request, error, function);
}

}  // namespace

VMPI_ENTRY(int, MPI_Send_init,
           (const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
            MPI_Request* request)) {
  return make_persistent({"MPI_Send_init", buf, count, datatype, dest, tag, comm},
                         SendMode::kStandard, true, request);
}

VMPI_ENTRY(int, MPI_Ssend_init,
           (const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
            MPI_Request* request)) {
  return make_persistent({"MPI_Ssend_init", buf, count, datatype, dest, tag, comm},
                         SendMode::kSynchronous, true, request);
}

VMPI_ENTRY(int, MPI_Bsend_init,
           (const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
            MPI_Request* request)) {
  return make_persistent({"MPI_Bsend_init", buf, count, datatype, dest, tag, comm},
                         SendMode::kBuffered, true, request);
}

VMPI_ENTRY(int, MPI_Rsend_init,
           (const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
            MPI_Request* request)) {
  return make_persistent({"MPI_Rsend_init", buf, count, datatype, dest, tag, comm},
                         SendMode::kReady, true, request);
}

VMPI_ENTRY(int, MPI_Recv_init,
           (void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
            MPI_Request* request)) {
  return make_persistent({"MPI_Recv_init", buf, count, datatype, source, tag, comm},
                         SendMode::kStandard, false, request);
}

VMPI_ENTRY(int, MPI_Start, (MPI_Request * request)) {
  BigGuard guard;
  const int error = vmpi::check_requests("MPI_Start", 1, request);
  return error != MPI_SUCCESS ? error : start(*request, "MPI_Start");
}

VMPI_ENTRY(int, MPI_Startall, (int count, MPI_Request array_of_requests[])) {
  BigGuard guard;
  int error = vmpi::check_requests("MPI_Startall", count, array_of_requests);
  for (int i = 0; i < count && error == MPI_SUCCESS; ++i)
    error = start(array_of_requests[i], "MPI_Startall");
  return error;
}

VMPI_ENTRY(int, MPI_Grequest_start,
           (MPI_Grequest_query_function * query_fn, MPI_Grequest_free_function* free_fn,
            MPI_Grequest_cancel_function* cancel_fn, void* extra_state, MPI_Request* request)) {
  BigGuard guard;
  constexpr const char* kName = "MPI_Grequest_start";
  if (request == nullptr)
    return vmpi::raise(nullptr, MPI_ERR_ARG, kName, "argument `request` is a null pointer");
  if (query_fn == nullptr || free_fn == nullptr || cancel_fn == nullptr)
    return vmpi::raise(nullptr, MPI_ERR_ARG, kName, "argument `%s` is a null pointer",
                       query_fn == nullptr  ? "query_fn"
                       : free_fn == nullptr ? "free_fn"
                                            : "cancel_fn");
  auto* const said = static_cast<vmpi::Generalized*>(std::malloc(sizeof(vmpi::Generalized)));
  Request* const made = said != nullptr ? vmpi::make_request() : nullptr;
  if (made == nullptr) {
    std::free(said);
    return vmpi::raise(nullptr, MPI_ERR_NO_MEM, kName, "there is no memory left");
  }
  *said = {query_fn, free_fn, cancel_fn, extra_state};
  made->kind = Request::Kind::kGeneralized;
  made->is_active = true;
  made->is_complete = false;
  made->protocol = said;
  *request = handle_of(*made);
  return MPI_SUCCESS;
}

VMPI_ENTRY(int, MPI_Grequest_complete, (MPI_Request request)) {
  BigGuard guard;
  Request* const completed = vmpi::active_request(request);
  if (completed == nullptr || completed->kind != Request::Kind::kGeneralized)
    return vmpi::raise(nullptr, MPI_ERR_REQUEST, "MPI_Grequest_complete",
                       "argument `request` is no request of MPI_Grequest_start");
  completed->is_complete = true;
  if (completed->is_freed) return vmpi::retire(*completed, &request, MPI_STATUS_IGNORE);
  return MPI_SUCCESS;
}
