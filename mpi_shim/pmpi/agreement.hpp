// SPDX-License-Identifier: BSD-2-Clause
// How the ranks of a communicator agree on whether they have a team: by the MPI's own collectives.
#pragma once

#include "mpi_shim/pmpi/communicator.hpp"

namespace vmpi::pmpi {

/// kNone, and the communicator's team at all ranks; or why there is none, at all ranks alike.
[[nodiscard]] Reason make_team(Communicator& communicator) noexcept;

}  // namespace vmpi::pmpi
