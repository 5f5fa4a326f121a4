// SPDX-License-Identifier: BSD-2-Clause
// How communicators come from others (MPI 5.0 sections 7.4.2, 7.6.2). Collective over the old one
// unless a line says otherwise; arguments were checked by the caller; the big lock is held.
//
// Each returns MPI_SUCCESS, MPI_ERR_NO_MEM, MPI_ERR_PROC_ABORTED (a rank is gone), MPI_ERR_OTHER
// (no context is left, or a rank could not be asked), or what a callback of an attribute said.
// `*out` is null for a process that is not in the new one.
#pragma once

#include "mpi_shim/coll/schedule.hpp"
#include "mpi_shim/core/comm.hpp"

namespace vmpi {

/// With attributes, topology, error handler.
[[nodiscard]] int duplicate(Comm& from, Comm** out) noexcept;
/// What MPI_Comm_idup starts. `*out` may be used when the schedule has ended without an error, and is
/// no communicator any more when with one. An error here: nothing was planned.
[[nodiscard]] int plan_duplicate(Schedule& schedule, Comm** out) noexcept;
/// `group` is a part of the communicator's.
[[nodiscard]] int create_from_group(Comm& from, Group& group, Comm** out) noexcept;
/// Of an intercommunicator: `part` is of the local group, and the same in all its ranks.
[[nodiscard]] int create_between(Comm& from, Group& part, Comm** out) noexcept;
/// Collective over `group` alone.
[[nodiscard]] int create_among(Comm& from, Group& group, int tag, Comm** out) noexcept;
/// Of an intercommunicator too, whose colors are only made where both groups have them.
[[nodiscard]] int split(Comm& from, int color, int key, Comm** out) noexcept;
/// Of an intracommunicator, by the host that ranks run on.
[[nodiscard]] int split_by_host(Comm& from, int key, Comm** out) noexcept;

/// Collective over both groups. MPI_ERR_ARG: they have processes in common.
[[nodiscard]] int join(Comm& local, int leader, Comm* peer, int remote_leader, int tag,
                       Comm** out) noexcept;
[[nodiscard]] int merge(Comm& inter, bool is_high, Comm** out) noexcept;

}  // namespace vmpi
