// SPDX-License-Identifier: BSD-2-Clause
// Each rank keeps what its block of 2^k neighbours gives (`block`) beside its own result. In round k
// it exchanges the block with the rank whose bit k differs; what comes from below goes before both.
#include <utility>

#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/coll/temporary.hpp"

namespace vmpi {
namespace {

/// `has_result`: `receive` holds our own part already, as MPI_Scan has it.
[[nodiscard]] int scan(Comm& comm, const void* own, void* receive, std::int64_t count,
                       Datatype& type, const Op& op, bool has_result, int tag) noexcept {
  const int size = comm.size();
  const int rank = comm.rank();
  Elements first;
  Elements second;
  if (!first.make(type, count) || !second.make(type, count)) return MPI_ERR_NO_MEM;
  void* block = first.origin();
  void* incoming = second.origin();
  (void)copy_typed(type, count, own, type, count, block);
  Outcome outcome;
  for (int mask = 1; mask < size; mask *= 2) {
    const int peer = rank ^ mask;
    if (peer < size) {
      if (outcome.is_ended_by(exchange(comm, Plane::kCollective, peer, tag, block, count, type,
                                       peer, tag, incoming, count, type)))
        return outcome.error;
      if (peer > rank) {
        reduce(op, type, count, block, incoming);
        std::swap(block, incoming);
      } else {
        if (has_result)
          reduce(op, type, count, incoming, receive);
        else
          (void)copy_typed(type, count, incoming, type, count, receive);
        has_result = true;
        reduce(op, type, count, incoming, block);
      }
    }
    if (mask > size / 2) break;
  }
  return outcome.error;
}

}  // namespace

int scan_recursive_doubling(Comm& comm, const void* send, void* receive, std::int64_t count,
                            Datatype& type, const Op& op) noexcept {
  const int tag = next_tag(comm);
  if (count == 0) return MPI_SUCCESS;
  if (send != MPI_IN_PLACE) (void)copy_typed(type, count, send, type, count, receive);
  return scan(comm, receive, receive, count, type, op, true, tag);
}

int exscan_recursive_doubling(Comm& comm, const void* send, void* receive, std::int64_t count,
                              Datatype& type, const Op& op) noexcept {
  const int tag = next_tag(comm);
  if (count == 0) return MPI_SUCCESS;
  const void* const own = send == MPI_IN_PLACE ? receive : send;
  return scan(comm, own, receive, count, type, op, false, tag);
}

}  // namespace vmpi
