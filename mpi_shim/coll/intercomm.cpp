// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/coll/intercomm.hpp"
#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/coll/comm_create.hpp"
#include "mpi_shim/coll/context_agreement.hpp"
#include "mpi_shim/core/engine.hpp"
#include "mpi_shim/core/groups.hpp"
#include "mpi_shim/core/world.hpp"

namespace vmpi {
int swap_bytes(Comm& local, int leader, Comm* peer, int remote_leader, int tag, const void* ours,
               std::int64_t our_bytes, void* theirs, std::int64_t their_bytes) noexcept {
  int error = MPI_SUCCESS;
  if (local.rank() == leader)
    error = exchange(*peer, Plane::kCollective, remote_leader, tag, ours, our_bytes, byte_type(),
                     remote_leader, tag, theirs, their_bytes, byte_type());
  const int told = bcast_bytes(local, theirs, their_bytes, leader);
  return error != MPI_SUCCESS ? error : told;
}

namespace {

[[nodiscard]] int swap_numbers(Comm& local, int leader, Comm* peer, int remote_leader, int tag,
                               const int* ours, int our_count, int* theirs,
                               int their_count) noexcept {
  constexpr std::int64_t kBytes = sizeof(int);
  return swap_bytes(local, leader, peer, remote_leader, tag, ours, our_count * kBytes, theirs,
                    their_count * kBytes);
}

}  // namespace

int create_between(Comm& from, Group& part, Comm** out) noexcept {
  *out = nullptr;
  Comm* const peer = from.rank() == 0 ? &from : nullptr;
  const int tag = apart_tag(next_tag(from));
  const int our_size = part.size();
  int their_size = 0;
  int error = swap_numbers(*from.local, 0, peer, 0, tag, &our_size, 1, &their_size, 1);
  if (error != MPI_SUCCESS) return error;
  if (their_size < 0 || their_size > from.remote->size()) return MPI_ERR_OTHER;
  Array<int> theirs;
  RankIndex index;
  if (!theirs.resize(static_cast<std::size_t>(their_size)) || !index.build(*from.remote))
    return MPI_ERR_NO_MEM;
  error = swap_numbers(*from.local, 0, peer, 0, tag, part.members.data(), our_size, theirs.data(),
                       their_size);
  if (error != MPI_SUCCESS) return error;
  for (const int member : theirs)
    if (member < 0 || member >= world.size || index.rank_of(member) == MPI_UNDEFINED)
      return MPI_ERR_OTHER;
  Group* const remote = make_group(theirs.data(), theirs.size());
  if (remote == nullptr) return MPI_ERR_NO_MEM;
  error = make_or_give_back(from, part, remote, agree_on_context(from), out);
  release(*remote);
  return error;
}

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
