// SPDX-License-Identifier: BSD-2-Clause
// A program's array of requests, as MPI_Wait*, MPI_Test* and MPI_Request_get_status* look at it.
#pragma once

#include <mpi.h>

#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/requests.hpp"

namespace vmpi {

/// Null: MPI_REQUEST_NULL or an inactive persistent one; REQUIRES: check_requests.
[[nodiscard]] inline Request* active_request(MPI_Request handle) noexcept {
  if (handle == MPI_REQUEST_NULL) return nullptr;
  Request* const found = find_request(handle);
  return found != nullptr && found->is_active ? found : nullptr;
}

/// MPI_SUCCESS, or the error that was raised: a count below 0, a null pointer, no request.
[[nodiscard]] int check_requests(const char* function, int count, const MPI_Request* requests,
                                 const char* name_of_count = "count") noexcept;

/// Ends it, and raises what it ended with.
[[nodiscard]] int retire_and_raise(Request& request, MPI_Request* handle, MPI_Status* status,
                                   const char* function) noexcept;

}  // namespace vmpi
