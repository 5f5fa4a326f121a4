// SPDX-License-Identifier: BSD-2-Clause
// Collectives as schedules: of intracommunicators by the algorithm that is selected, of
// intercommunicators by what is here, where slices are of the remote ranks, counts of the local
// ones, and a root may be MPI_ROOT or MPI_PROC_NULL.
#pragma once

#include "mpi_shim/coll/algorithms.hpp"
#include "mpi_shim/coll/schedule.hpp"
#include "mpi_shim/core/neighbours.hpp"

namespace vmpi {

void plan_collective(Schedule& schedule, Collective which, const Operands& of) noexcept;

/// What goes to the destinations is `own`, or slices of `in`; null is the other one.
void plan_neighbours(Plan& plan, const Neighbours& neighbours, const Typed* own, const Slices* in,
                     const Slices& out) noexcept;

}  // namespace vmpi
