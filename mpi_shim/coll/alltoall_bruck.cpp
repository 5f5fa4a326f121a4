// SPDX-License-Identifier: BSD-2-Clause
// Bruck's algorithm for short slices: they wait in a row by how far they have to go, and in round k
// all that have bit k in that distance travel 2^k ranks together.
#include <cstring>

#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/coll/temporary.hpp"

namespace vmpi {

int alltoall_bruck(Comm& comm, const Slices& in, const Slices& out) noexcept {
  const int size = comm.size();
  const int me = comm.rank();
  const int tag = next_tag(comm);
  const std::int64_t slice = in.bytes(0);
  const auto slice_bytes = static_cast<std::size_t>(slice);
  Bytes row;
  Bytes going;
  Bytes coming;
  const std::int64_t half = (size / 2 + 1) * slice;
  if (!row.make(size * slice) || !going.make(half) || !coming.make(half)) return MPI_ERR_NO_MEM;
  for (int i = 0; i < size; ++i) pack_all(in[(me + i) % size], row.data() + i * slice);

  Outcome outcome;
  for (int bit = 1; bit < size; bit *= 2) {
    std::int64_t bytes = 0;
    for (int i = bit; i < size; ++i) {
      if ((i & bit) == 0) continue;
      std::memcpy(going.data() + bytes, row.data() + i * slice, slice_bytes);
      bytes += slice;
    }
    if (outcome.is_ended_by(exchange(comm, Plane::kCollective, (me + bit) % size, tag, going.data(),
                                     bytes, byte_type(), (me - bit + size) % size, tag,
                                     coming.data(), bytes, byte_type())))
      return outcome.error;
    bytes = 0;
    for (int i = bit; i < size; ++i) {
      if ((i & bit) == 0) continue;
      std::memcpy(row.data() + i * slice, coming.data() + bytes, slice_bytes);
      bytes += slice;
    }
    if (bit > size / 2) break;
  }
  if (outcome.error != MPI_SUCCESS) return outcome.error;
  // What has come i ranks upwards is from the rank i below.
  for (int i = 0; i < size; ++i)
    unpack_all(out[(me - i + size) % size], row.data() + i * slice, slice);
  return MPI_SUCCESS;
}

}  // namespace vmpi
