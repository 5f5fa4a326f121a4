// SPDX-License-Identifier: BSD-2-Clause
// Bruck's algorithm over packed slices, which may differ in size as all ranks know all sizes. Each
// keeps a row that begins with its own slice; in round k it gets the first 2^k slices of the row of
// the rank 2^k above, which follow what it has.
#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/coll/temporary.hpp"

namespace vmpi {

int allgather_bruck(Comm& comm, const Typed& in, const Slices& out) noexcept {
  const int size = comm.size();
  const int me = comm.rank();
  const int tag = next_tag(comm);
  if (size == 1) {
    if (!in.is_in_place()) copy(in, out[0]);
    return MPI_SUCCESS;
  }
  Array<std::int64_t> ends;  // of the slices in our row
  if (!ends.resize(static_cast<std::size_t>(size))) return MPI_ERR_NO_MEM;
  std::int64_t total = 0;
  for (int i = 0; i < size; ++i) {
    total += out.bytes((me + i) % size);
    ends[static_cast<std::size_t>(i)] = total;
  }
  const auto bytes_of_first = [&](int count) noexcept {
    return count == 0 ? 0 : ends[static_cast<std::size_t>(count) - 1];
  };
  // What others get of our row: its first slices, whose sizes both know.
  Bytes row;
  if (!row.make(total)) return MPI_ERR_NO_MEM;
  const Typed own = in.is_in_place() ? out[me] : in;
  const std::int64_t own_room = out.bytes(me);
  (void)pack(*own.type, own.count, own.buffer, 0, row.data(), static_cast<std::size_t>(own_room));

  Outcome outcome;
  for (int have = 1; have < size;) {
    const int more = have < size - have ? have : size - have;
    const int to = (me - have + size) % size;
    const int from = (me + have) % size;
    const std::int64_t at = bytes_of_first(have);
    if (outcome.is_ended_by(exchange(comm, Plane::kCollective, to, tag, row.data(),
                                     bytes_of_first(more), byte_type(), from, tag, row.data() + at,
                                     bytes_of_first(have + more) - at, byte_type())))
      return outcome.error;
    have += more;
  }
  if (outcome.error != MPI_SUCCESS) return outcome.error;
  for (int i = 0; i < size; ++i) {
    if (i == 0 && in.is_in_place()) continue;
    unpack_all(out[(me + i) % size], row.data() + bytes_of_first(i),
               bytes_of_first(i + 1) - bytes_of_first(i));
  }
  return MPI_SUCCESS;
}

}  // namespace vmpi
