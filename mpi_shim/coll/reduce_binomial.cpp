// SPDX-License-Identifier: BSD-2-Clause
// The tree of bcast_binomial.cpp upwards: what a rank has stands for itself and the ranks above it,
// so that the order of ranks is kept when they are counted from 0. An operation that does not
// commute is reduced to rank 0, which tells the root.
#include <utility>

#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/coll/temporary.hpp"

namespace vmpi {

int reduce_binomial(Comm& comm, const void* send, void* receive, std::int64_t count, Datatype& type,
                    const Op& op, int root) noexcept {
  const int size = comm.size();
  const int tag = next_tag(comm);
  if (count == 0) return MPI_SUCCESS;
  const int top = op.is_commutative ? root : 0;
  const int me = (comm.rank() - top + size) % size;
  const auto rank_of = [&](int relative) noexcept { return (relative + top) % size; };

  // Our result so far is in `result`; `spare` takes what comes, and then the next result.
  const void* result = send == MPI_IN_PLACE ? receive : send;
  Elements first;
  Elements second;
  if (me % 2 == 0 && me + 1 < size && (!first.make(type, count) || !second.make(type, count)))
    return MPI_ERR_NO_MEM;
  void* spare = first.origin();
  void* next_spare = second.origin();
  Outcome outcome;
  int mask = 1;
  for (; mask < size && (me & mask) == 0; mask <<= 1) {
    if (me + mask >= size) continue;
    if (outcome.is_ended_by(
            receive_from(comm, Plane::kCollective, rank_of(me + mask), tag, spare, count, type)))
      return outcome.error;
    reduce(op, type, count, result, spare);
    result = spare;
    std::swap(spare, next_spare);
  }
  if (me != 0 && outcome.is_ended_by(send_to(comm, Plane::kCollective, rank_of(me - mask), tag,
                                             result, count, type)))
    return outcome.error;
  if (top == root) {
    if (me == 0 && result != receive) (void)copy_typed(type, count, result, type, count, receive);
    return outcome.error;
  }
  if (comm.rank() == top)
    (void)outcome.is_ended_by(send_to(comm, Plane::kCollective, root, tag, result, count, type));
  if (comm.rank() == root)
    (void)outcome.is_ended_by(
        receive_from(comm, Plane::kCollective, top, tag, receive, count, type));
  return outcome.error;
}

}  // namespace vmpi
