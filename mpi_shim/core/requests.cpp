// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/requests.hpp"

#include <cstdlib>

#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/status.hpp"

namespace vmpi {

HandleTable<HandleKind::kRequest, Request> request_table;

Request* make_request() noexcept { return request_table.make(); }

Request* make_request(const Request& asked) noexcept {
  Request* const made = make_request();
  if (made == nullptr) return nullptr;
  const std::uint32_t handle = made->handle;
  *made = asked;
  made->handle = handle;
  hold(*made);
  return made;
}

void hold(Request& request) noexcept {
  retain(*request.comm);
  retain(*request.type);
}

void drop_request(Request& request) noexcept { request_table.release(request); }

namespace {
MPI_Request the_sent_request = MPI_REQUEST_NULL;
}

bool make_sent_request() noexcept {
  Request* const made = make_request();
  if (made == nullptr) return false;
  made->kind = Request::Kind::kSend;
  made->is_active = true;
  made->is_shared = true;
  the_sent_request = handle_of(*made);
  return true;
}

MPI_Request sent_request() noexcept { return the_sent_request; }

void release_request(Request& request) noexcept {
  if (request.is_shared) return;
  Comm* const comm = request.comm;
  Datatype* const type = request.type;
  if (request.kind == Request::Kind::kGeneralized) std::free(request.protocol);
  request_table.release(request);
  if (type != nullptr) release(*type);
  if (comm != nullptr) release(*comm);
}

void release_freed(Request& request) noexcept { release_request(request); }

void write_empty_status(MPI_Status* status) noexcept {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = MPI_ANY_SOURCE;
  status->MPI_TAG = MPI_ANY_TAG;
  set_bytes(*status, 0);
  set_cancelled(*status, false);
}

void write_status(const Request& request, MPI_Status* status) noexcept {
  if (status == MPI_STATUS_IGNORE) return;
  // A schedule's fields are those of a receive, or say nothing.
  const bool is_receive =
      request.kind == Request::Kind::kReceive || request.kind == Request::Kind::kSchedule;
  status->MPI_SOURCE = is_receive ? request.source : MPI_ANY_SOURCE;
  status->MPI_TAG = is_receive ? request.received_tag : MPI_ANY_TAG;
  set_bytes(*status, is_receive ? request.bytes : 0);
  set_cancelled(*status, request.is_cancelled);
}

namespace {

/// The program's functions may call ours.
int retire_generalized(Request& request, MPI_Status* status) noexcept {
  const Generalized said = *static_cast<Generalized*>(request.protocol);
  MPI_Status own = {};
  big_lock.unlock();
  int error = said.query != nullptr ? said.query(said.state, &own) : MPI_SUCCESS;
  const int freed = said.free != nullptr ? said.free(said.state) : MPI_SUCCESS;
  big_lock.lock();
  if (error == MPI_SUCCESS) error = freed;
  if (status != MPI_STATUS_IGNORE) {
    own.MPI_ERROR = status->MPI_ERROR;
    *status = own;
  }
  return error;
}

}  // namespace

int retire(Request& request, MPI_Request* handle, MPI_Status* status) noexcept {
  if (request.kind == Request::Kind::kGeneralized) {
    const int error = retire_generalized(request, status);
    release_request(request);
    *handle = MPI_REQUEST_NULL;
    return error;
  }
  write_status(request, status);
  const int error = request.error;
  if (request.is_shared) {
    *handle = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
  }
  request.is_active = false;
  if (!request.is_persistent) {
    release_request(request);
    *handle = MPI_REQUEST_NULL;
  }
  return error;
}

}  // namespace vmpi
