// SPDX-License-Identifier: BSD-2-Clause
// How ranks agree on something, such as whether they have a team: by the MPI's own collectives. And
// how the MPI underneath moves on while it is not called.
#pragma once

#include <cstdint>

#include "mpi_shim/pmpi/communicator.hpp"

namespace vmpi::pmpi {

/// Where a rank waits for the others of a communicator.
struct Meeting {
  Handle communicator;
  int rank;
  int size;
  const char* place;  ///< for the line that is told when they do not come
};
/// MPI_Allreduce. False: the MPI has failed.
[[nodiscard, gnu::cold]] bool combine(const Meeting& meeting, const std::uint64_t* own,
                                      std::uint64_t* all, int count, Handle operation) noexcept;

/// kNone, and the communicator's team at all ranks; or why there is none, at all ranks alike.
[[nodiscard]] Reason make_team(Communicator& communicator) noexcept;

/// What else is under way in the MPI goes on.
void move_mpi_on() noexcept;

}  // namespace vmpi::pmpi
