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

// How two groups join: their leaders swap a number or more in each of two steps, and tell their own
// groups; then all agree on a context. A leader whose group goes no further says so in the step
// behind, since the other waits for its word; that one tells its own group, and both are done.

namespace {

/// What a leader says instead of its numbers, none of which is negative.
constexpr int kRefused = -1;

[[nodiscard]] int swap_numbers(Comm& local, int leader, Comm* peer, int remote_leader, int tag,
                               const int* ours, int our_count, int* theirs,
                               int their_count) noexcept {
  constexpr std::int64_t kBytes = sizeof(int);
  return swap_bytes(local, leader, peer, remote_leader, tag, ours, our_count * kBytes, theirs,
                    their_count * kBytes);
}

struct Joining {
  Comm& local;
  int leader;
  Comm* peer;
  int remote_leader;
  int tag;
  bool is_awaited = false;  ///< of a leader: the other goes on to the next step

  /// `theirs` is the other leader's word at our leader, also after an error, while that one goes
  /// on.
  [[nodiscard]] int swap(const int* ours, int our_count, int* theirs, int their_count) noexcept {
    int error = MPI_SUCCESS;
    if (local.rank() == leader) {
      error = exchange_with(ours, our_count, theirs, their_count);
      if (error != MPI_SUCCESS) theirs[0] = kRefused;
      is_awaited = theirs[0] >= 0;
    }
    const int told = bcast_bytes(local, theirs, their_count * std::int64_t{sizeof(int)}, leader);
    if (error == MPI_SUCCESS) error = told;
    return error == MPI_SUCCESS && theirs[0] < 0 ? MPI_ERR_PROC_ABORTED : error;
  }
  /// In the step of the members.
  void refuse_members() noexcept {
    // What the other says there is its whole group, which nobody needs.
    if (is_awaited) (void)exchange_with(&kRefused, 1, nullptr, 0);
  }
  void refuse_context() noexcept {
    if (is_awaited) refuse_context_between(*peer, remote_leader, tag);
  }

 private:
  [[nodiscard]] int exchange_with(const int* ours, int our_count, int* theirs,
                                  int their_count) noexcept {
    constexpr std::int64_t kBytes = sizeof(int);
    const int apart = apart_tag(tag);
    return exchange(*peer, Plane::kCollective, remote_leader, apart, ours, our_count * kBytes,
                    byte_type(), remote_leader, apart, theirs, their_count * kBytes, byte_type());
  }
};

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
  Joining joining{local, leader, peer, remote_leader, tag};
  const int our_size = local.size();
  int their_size = 0;
  Array<int> theirs;
  int error = joining.swap(&our_size, 1, &their_size, 1);
  if (error == MPI_SUCCESS && (their_size == 0 || their_size > world.size)) return MPI_ERR_OTHER;
  if (error == MPI_SUCCESS && !theirs.resize(static_cast<std::size_t>(their_size)))
    error = MPI_ERR_NO_MEM;
  if (error != MPI_SUCCESS) {
    joining.refuse_members();
    return error;
  }
  error = joining.swap(local.group->members.data(), our_size, theirs.data(), their_size);
  if (error != MPI_SUCCESS && !joining.is_awaited) return error;
  for (const int member : theirs)
    if (member < 0 || member >= world.size) return MPI_ERR_OTHER;
  RankIndex ours;
  const bool is_built = ours.build(*local.group);
  // Both sides see that, and neither goes on.
  for (const int member : theirs)
    if (is_built && ours.rank_of(member) != MPI_UNDEFINED)
      return error == MPI_SUCCESS ? MPI_ERR_ARG : error;
  Group* const remote =
      is_built && error == MPI_SUCCESS ? make_group(theirs.data(), theirs.size()) : nullptr;
  if (remote == nullptr) {
    joining.refuse_context();
    return error == MPI_SUCCESS ? MPI_ERR_NO_MEM : error;
  }
  error = make_or_give_back(local, *local.group, remote,
                            agree_on_context_between(local, leader, peer, remote_leader, tag), out);
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
