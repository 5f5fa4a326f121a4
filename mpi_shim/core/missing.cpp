// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/missing.hpp"

#include <mpi.h>

#include "runtime/base/log.hpp"

namespace vmpi {

int missing(const char* function) noexcept {
  verbatim::log_error("%s was called, which this MPI does not have (MPI_ERR_UNSUPPORTED_OPERATION)",
                      function);
  return MPI_ERR_UNSUPPORTED_OPERATION;
}

}  // namespace vmpi
