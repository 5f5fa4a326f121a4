// SPDX-License-Identifier: BSD-2-Clause
// The requests that a program holds. What they refer to (type, communicator) is held from
// make_request to release_request.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "mpi_shim/core/engine.hpp"
#include "mpi_shim/core/handle.hpp"

namespace vmpi {

extern HandleTable<HandleKind::kRequest, Request> request_table;

/// Null: no memory, or no numbers.
[[nodiscard]] Request* make_request() noexcept;
/// Of what is asked, which it holds until it ends.
[[nodiscard]] Request* make_request(const Request& asked) noexcept;
/// Of sends that are over when they begin: it is one for all of them, complete, and never goes.
[[nodiscard]] MPI_Request sent_request() noexcept;
/// MPI_Init's part of it. False: no memory.
[[nodiscard]] bool make_sent_request() noexcept;
/// Null: none, or an ended one.
[[nodiscard]] inline Request* find_request(MPI_Request handle) noexcept {
  return request_table.find(number_of(handle));
}
/// From now on it holds what it was asked with: of a new one whose fields were set in place.
void hold(Request& request) noexcept;
void release_request(Request& request) noexcept;
/// Of one that holds nothing yet.
void drop_request(Request& request) noexcept;
/// Of a request that MPI_Request_free let go while it was under way.
void release_freed(Request& request) noexcept;
[[nodiscard]] inline MPI_Request handle_of(const Request& request) noexcept {
  return reinterpret_cast<MPI_Request>(static_cast<std::uintptr_t>(request.handle));
}

/// Callbacks of MPI_Grequest_start: the request's `protocol`.
struct Generalized {
  MPI_Grequest_query_function* query;
  MPI_Grequest_free_function* free;
  MPI_Grequest_cancel_function* cancel;
  void* state;
};

/// What a completed request says; MPI_STATUS_IGNORE: nothing. Leaves MPI_ERROR alone.
void write_status(const Request& request, MPI_Status* status) noexcept;
/// Of no request, or an inactive one (MPI 5.0 section 3.7.3).
void write_empty_status(MPI_Status* status) noexcept;

/// Ends an active request that is complete, as MPI_Wait does: the status is written, the handle
/// becomes MPI_REQUEST_NULL unless it is persistent. Returns its error.
int retire(Request& request, MPI_Request* handle, MPI_Status* status) noexcept;

}  // namespace vmpi
