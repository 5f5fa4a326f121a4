// SPDX-License-Identifier: BSD-2-Clause
// Blocking collectives over several nodes by leaders (leaders.hpp), in two layers: within a node those of
// its ranks' own communicator, which go by flags and data in mapped memory where they can (host_team.hpp),
// among the leaders a plan.
#pragma once

#include "mpi_shim/coll/collectives.hpp"

namespace vmpi {

/// What is planned for the whole communicator where there are leaders; null: it has none.
[[nodiscard]] Algorithm* leaders_of(Collective which) noexcept;
/// The error. REQUIRES: leaders_of(which) is not null, and nodes_of(comm) neither.
[[nodiscard]] int do_by_leaders(Collective which, Comm& comm, const Operands& of) noexcept;

}  // namespace vmpi
