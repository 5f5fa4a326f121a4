// SPDX-License-Identifier: BSD-2-Clause
// The largest power of two of ranks takes part; of the first pairs the even ones give their part to
// the odd ones before, and get the result after. What two have always covers neighbouring ranks, so
// that the order is kept, and all compute alike.
#include <utility>

#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/coll/temporary.hpp"

namespace vmpi {

int allreduce_recursive_doubling(Comm& comm, const void* send, void* receive, std::int64_t count,
                                 Datatype& type, const Op& op) noexcept {
  const int size = comm.size();
  const int rank = comm.rank();
  const int tag = next_tag(comm);
  if (count == 0) return MPI_SUCCESS;
  if (send != MPI_IN_PLACE) (void)copy_typed(type, count, send, type, count, receive);
  if (size == 1) return MPI_SUCCESS;
  Elements temporary;
  if (!temporary.make(type, count)) return MPI_ERR_NO_MEM;
  void* result = receive;
  void* incoming = temporary.origin();
  Outcome outcome;

  int active = 1;
  while (active <= size / 2) active *= 2;
  const int pairs = size - active;
  const bool is_paired = rank < 2 * pairs;
  const bool rests = is_paired && rank % 2 == 0;
  if (rests) {
    if (outcome.is_ended_by(
            send_to(comm, Plane::kCollective, rank + 1, tag, result, count, type)) ||
        outcome.is_ended_by(
            receive_from(comm, Plane::kCollective, rank + 1, tag, result, count, type)))
      return outcome.error;
    return outcome.error;
  }
  if (is_paired) {
    if (outcome.is_ended_by(
            receive_from(comm, Plane::kCollective, rank - 1, tag, incoming, count, type)))
      return outcome.error;
    reduce(op, type, count, incoming, result);
  }
  const int me = is_paired ? rank / 2 : rank - pairs;
  for (int mask = 1; mask < active; mask *= 2) {
    const int partner = me ^ mask;
    const int peer = partner < pairs ? 2 * partner + 1 : partner + pairs;
    if (outcome.is_ended_by(exchange(comm, Plane::kCollective, peer, tag, result, count, type, peer,
                                     tag, incoming, count, type)))
      return outcome.error;
    if (partner < me) {
      reduce(op, type, count, incoming, result);
    } else {
      reduce(op, type, count, result, incoming);
      std::swap(result, incoming);
    }
  }
  if (result != receive) (void)copy_typed(type, count, result, type, count, receive);
  if (is_paired)
    (void)outcome.is_ended_by(
        send_to(comm, Plane::kCollective, rank - 1, tag, receive, count, type));
  return outcome.error;
}

}  // namespace vmpi
