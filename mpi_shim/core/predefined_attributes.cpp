// SPDX-License-Identifier: BSD-2-Clause
// What MPI_COMM_WORLD says about the library under keyvals of the standard (MPI 5.0 section 9.1.2).
#include <limits>

#include "mpi_shim/core/attributes.hpp"
#include "mpi_shim/core/errors.hpp"
#include "mpi_shim/core/world.hpp"

namespace vmpi {
namespace {

// Pointers to these are what programs are given.
constinit int tag_upper_bound = std::numeric_limits<int>::max();
constinit int wtime_is_global = 0;  ///< each process calibrates its own clock
constinit int host_rank = MPI_PROC_NULL;
constinit int io_rank = MPI_ANY_SOURCE;
constinit int app_number = 0;
constinit int universe_size = 0;

}  // namespace

bool predefined_attribute(int keyval, int** value) noexcept {
  switch (keyval) {
    case MPI_TAG_UB:
      *value = &tag_upper_bound;
      return true;
    case MPI_WTIME_IS_GLOBAL:
      *value = &wtime_is_global;
      return true;
    case MPI_HOST:
      *value = &host_rank;
      return true;
    case MPI_IO:
      *value = &io_rank;
      return true;
    case MPI_APPNUM:
      app_number = world.app_number;
      *value = &app_number;
      return true;
    case MPI_UNIVERSE_SIZE:
      universe_size = world.universe_size;
      *value = universe_size > 0 ? &universe_size : nullptr;
      return true;
    case MPI_LASTUSEDCODE:
      *value = last_used_code();
      return true;
    default:
      return false;
  }
}

}  // namespace vmpi
