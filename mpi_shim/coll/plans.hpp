// SPDX-License-Identifier: BSD-2-Clause
// Collectives as schedules: those of intracommunicators for the nonblocking functions, those of
// intercommunicators for both. Arguments are as in collectives.hpp; of an intercommunicator slices
// are of the remote ranks, and `root` may be MPI_ROOT or MPI_PROC_NULL. What has no memory leaves a
// schedule that is not good.
#pragma once

#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/coll/schedule.hpp"
#include "mpi_shim/core/neighbours.hpp"

namespace vmpi {

struct Reduced {
  const void* send;  ///< or MPI_IN_PLACE
  void* receive;
  std::int64_t count;
  Datatype* type;
  const Op* op;
};

void plan_barrier(Schedule& schedule) noexcept;
void plan_bcast(Schedule& schedule, const Typed& data, int root) noexcept;
/// (P - 1) (a + n b) at the root.
void plan_gather(Schedule& schedule, const Typed& in, const Slices& out, int root) noexcept;
void plan_scatter(Schedule& schedule, const Slices& in, const Typed& out, int root) noexcept;
void plan_allgather(Schedule& schedule, const Typed& in, const Slices& out) noexcept;
/// `in.buffer` may be MPI_IN_PLACE.
void plan_alltoall(Schedule& schedule, const Slices& in, const Slices& out) noexcept;

void plan_reduce(Schedule& schedule, const Reduced& what, int root) noexcept;
void plan_allreduce(Schedule& schedule, const Reduced& what) noexcept;
/// `counts` are of the local ranks, `what.count` is their sum.
void plan_reduce_scatter(Schedule& schedule, const Reduced& what, const int* counts) noexcept;
void plan_scan(Schedule& schedule, const Reduced& what) noexcept;
void plan_exscan(Schedule& schedule, const Reduced& what) noexcept;

/// What goes to the destinations is `own`, or slices of `in`; null is the other one.
void plan_neighbours(Schedule& schedule, const Neighbours& neighbours, const Typed* own,
                     const Slices* in, const Slices& out) noexcept;

/// Parts over the ranks of an intracommunicator that the schedule uses, for those above.
void plan_bcast_within(Schedule& schedule, const Comm& comm, const Typed& data, int root) noexcept;
void plan_reduce_within(Schedule& schedule, const Comm& comm, const Reduced& what,
                        int root) noexcept;
/// From rank 0, which has all of it; nothing of the schedule is under way.
void plan_spread_within(Schedule& schedule, const Comm& comm, const Reduced& what,
                        const int* counts, const void* all) noexcept;

}  // namespace vmpi
