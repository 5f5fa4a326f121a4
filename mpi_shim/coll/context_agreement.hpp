// SPDX-License-Identifier: BSD-2-Clause
// A context for a new communicator. Collective.
#pragma once

#include "mpi_shim/core/comm.hpp"
#include "mpi_shim/core/context_ids.hpp"

namespace vmpi {

/// `context` is 0 with an error: MPI_ERR_PROC_ABORTED, or MPI_ERR_OTHER where none is left.
struct Agreed {
  int error;
  std::uint32_t context;
};

/// A context that none of the communicator's processes uses, found together by them all (a
/// collective over `parent`).
[[nodiscard]] Agreed agree_on_context(Comm& parent) noexcept;
/// Among the ranks `ranks` of `parent`, of which ours is number `me`; others take no part. `tag`
/// keeps calls of several threads apart.
[[nodiscard]] Agreed agree_on_context_within(Comm& parent, const int* ranks, int count, int me,
                                             int tag) noexcept;
/// Among two groups: `local` is ours, its rank `leader` talks to rank `remote_leader` of `peer`.
/// `peer` is null elsewhere.
[[nodiscard]] Agreed agree_on_context_between(Comm& local, int leader, Comm* peer,
                                              int remote_leader, int tag) noexcept;
/// Of a leader whose own group goes no further: the other leader, which waits for its offer, hears
/// so.
void refuse_context_between(Comm& peer, int remote_leader, int tag) noexcept;

}  // namespace vmpi
