// SPDX-License-Identifier: BSD-2-Clause
// MPI without a launcher, an engine or communicators' groups: what types, operations, errors and
// infos need of the others to be tested alone. MPI_COMM_SELF and MPI_COMM_WORLD exist and return
// errors.
#pragma once

#include <mpi.h>

#include "mpi_shim/core/comm.hpp"

namespace no_ranks {

/// Makes the predefined types once, and both communicators as they were at first.
void begin();
/// What MPI_Finalize does.
void end();
[[nodiscard]] vmpi::Comm& self();

}  // namespace no_ranks
