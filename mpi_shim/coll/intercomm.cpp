// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/coll/comm_create.hpp"
#include "mpi_shim/coll/context_agreement.hpp"
#include "mpi_shim/core/engine.hpp"
#include "mpi_shim/core/groups.hpp"
#include "mpi_shim/core/world.hpp"

namespace vmpi {
namespace {

/// The leaders swap `count` numbers, and tell their own groups. `*theirs` has room.
[[nodiscard]] int swap_numbers(Comm& local, int leader, Comm* peer, int remote_leader, int tag,
                               const int* ours, int our_count, int* theirs,
                               int their_count) noexcept {
  Datatype& bytes = byte_type();
  constexpr std::int64_t kBytes = sizeof(int);
  int error = MPI_SUCCESS;
  if (local.rank() == leader)
    error = exchange(*peer, Plane::kCollective, remote_leader, tag, ours, our_count * kBytes, bytes,
                     remote_leader, tag, theirs, their_count * kBytes, bytes);
  const int told = bcast_binomial(local, theirs, their_count * kBytes, bytes, leader);
  return error != MPI_SUCCESS ? error : told;
}

}  // namespace

int join(Comm& local, int leader, Comm* peer, int remote_leader, int tag, Comm** out) noexcept {
  *out = nullptr;
  const int apart = apart_tag(tag);
  const int our_size = local.size();
  int their_size = 0;
  int error = swap_numbers(local, leader, peer, remote_leader, apart, &our_size, 1, &their_size, 1);
  if (error != MPI_SUCCESS) return error;
  Array<int> theirs;
  if (their_size <= 0 || their_size > world.size) return MPI_ERR_OTHER;
  if (!theirs.resize(static_cast<std::size_t>(their_size))) return MPI_ERR_NO_MEM;
  error = swap_numbers(local, leader, peer, remote_leader, apart, local.group->members.data(),
                       our_size, theirs.data(), their_size);
  if (error != MPI_SUCCESS) return error;
  for (const int member : theirs)
    if (member < 0 || member >= world.size) return MPI_ERR_OTHER;
  Group* const remote = make_group(theirs.data(), theirs.size());
  RankIndex ours;
  if (remote == nullptr || !ours.build(*local.group)) {
    if (remote != nullptr) release(*remote);
    return MPI_ERR_NO_MEM;
  }
  // Both sides see that, and neither goes on.
  for (const int member : theirs)
    if (ours.rank_of(member) != MPI_UNDEFINED) error = MPI_ERR_ARG;
  if (error == MPI_SUCCESS) {
    const std::uint32_t context = agree_on_context_between(local, leader, peer, remote_leader, tag);
    if (context == 0) {
      error = MPI_ERR_OTHER;
    } else {
      *out = make_comm(local, *local.group, remote, context);
      if (*out == nullptr) {
        give_context_back(context);
        error = MPI_ERR_NO_MEM;
      }
    }
  }
  release(*remote);
  return error;
}

int merge(Comm& inter, bool is_high, Comm** out) noexcept {
  *out = nullptr;
  // What the first of the other group says of its place, and where it is in the world.
  const int ours[2] = {is_high ? 1 : 0, inter.group->members[0]};
  int theirs[2] = {};
  Comm* const peer = inter.rank() == 0 ? &inter : nullptr;
  const int error =
      swap_numbers(*inter.local, 0, peer, 0, apart_tag(next_tag(inter)), ours, 2, theirs, 2);
  if (error != MPI_SUCCESS) return error;
  const bool are_alike = (theirs[0] != 0) == is_high;
  const bool we_are_first = are_alike ? ours[1] < theirs[1] : !is_high;
  Group* const all =
      we_are_first ? unite(*inter.group, *inter.remote) : unite(*inter.remote, *inter.group);
  if (all == nullptr) return MPI_ERR_NO_MEM;
  const int made = create_from_group(inter, *all, out);
  release(*all);
  return made;
}

}  // namespace vmpi
