// SPDX-License-Identifier: BSD-2-Clause
// Whom a rank of a topology has beside it (MPI 5.0 section 8.6).
#pragma once

#include "mpi_shim/core/comm.hpp"

namespace vmpi {

/// In the order in which the collectives' slices lie. MPI_PROC_NULL: outside of a grid.
struct Neighbours {
  Array<int> sources;
  Array<int> destinations;
  /// Of a grid: what goes up along a dimension comes from below, also where both are one rank.
  bool are_pairs = false;

  /// False: no memory. REQUIRES: the communicator has a topology.
  [[nodiscard]] bool find(const Comm& comm) noexcept;
};

/// Topology of another communicator of as many ranks. False: no memory.
[[nodiscard]] bool copy_topology(const Comm& from, Comm& to) noexcept;

}  // namespace vmpi
