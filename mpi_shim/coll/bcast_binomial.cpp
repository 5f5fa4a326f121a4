// SPDX-License-Identifier: BSD-2-Clause
// Ranks are counted from the root. Each receives from the one that lacks its lowest bit, then sends
// to those that have one lower bit more, the farthest first.
#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/coll/temporary.hpp"

namespace vmpi {

int bcast_binomial(Comm& comm, void* buffer, std::int64_t count, Datatype& type,
                   int root) noexcept {
  const int size = comm.size();
  const int tag = next_tag(comm);
  if (size == 1) return MPI_SUCCESS;
  const int me = (comm.rank() - root + size) % size;
  const auto rank_of = [&](int relative) noexcept { return (relative + root) % size; };

  Outcome outcome;
  unsigned mask = 1;
  for (; mask < static_cast<unsigned>(size); mask <<= 1) {
    if ((static_cast<unsigned>(me) & mask) == 0) continue;
    const int parent = rank_of(me - static_cast<int>(mask));
    if (outcome.is_ended_by(
            receive_from(comm, Plane::kCollective, parent, tag, buffer, count, type)))
      return outcome.error;
    break;
  }
  for (mask >>= 1; mask > 0; mask >>= 1) {
    if (me + static_cast<int>(mask) >= size) continue;
    const int child = rank_of(me + static_cast<int>(mask));
    if (outcome.is_ended_by(send_to(comm, Plane::kCollective, child, tag, buffer, count, type)))
      break;
  }
  return outcome.error;
}

}  // namespace vmpi
