// SPDX-License-Identifier: BSD-2-Clause
// Grids (MPI 5.0 section 8.5). Ranks count rows first: the last coordinate changes fastest. Pure
// arithmetic; any thread.
#pragma once

#include "mpi_shim/core/comm.hpp"

namespace vmpi {

/// MPI_PROC_NULL: outside, in a direction that is not periodic.
[[nodiscard]] int rank_at(const Cartesian& grid, const int* coords) noexcept;
void coords_of(const Cartesian& grid, int rank, int* coords) noexcept;
/// The rank `displacement` away in one direction.
[[nodiscard]] int neighbour(const Cartesian& grid, int rank, int direction,
                            int displacement) noexcept;

/// MPI_Dims_create: those of `dims` that are 0 become factors of what is left, as near to each other
/// as can be, the largest first. MPI_ERR_DIMS: the others do not divide `nodes`.
[[nodiscard]] int choose_dims(int nodes, int count, int* dims) noexcept;

}  // namespace vmpi
