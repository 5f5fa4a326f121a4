// SPDX-License-Identifier: BSD-2-Clause
// The way of gather_binomial.cpp back: each rank receives the packed slices of all that hang below
// it, and hands the halves on, the largest first.
#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/coll/temporary.hpp"

namespace vmpi {
namespace {

/// `offsets(i)`: where the slice of relative rank i begins in the root's packed row.
template <class Offsets>
[[nodiscard]] int scatter_row(Comm& comm, const unsigned char* packed, Offsets offsets,
                              const Typed& out, int root, int tag) noexcept {
  const int size = comm.size();
  const int me = (comm.rank() - root + size) % size;
  int end = size;  // of the ranks that hang below us
  Bytes row;
  const unsigned char* mine = packed;
  Outcome outcome;
  if (me != 0) {
    const int low_bit = me & -me;
    if (low_bit < size - me) end = me + low_bit;
    const std::int64_t bytes = offsets(end) - offsets(me);
    if (!row.make(bytes)) return MPI_ERR_NO_MEM;
    mine = row.data();
    if (outcome.is_ended_by(receive_from(comm, Plane::kCollective, (me - low_bit + root) % size,
                                         tag, row.data(), bytes, byte_type())))
      return outcome.error;
  }
  int bit = 1;
  while (bit < end - me) bit *= 2;
  for (bit /= 2; bit > 0; bit /= 2) {
    const int child = me + bit;
    if (child >= end) continue;
    const int child_end = end - child < bit ? end : child + bit;
    if (outcome.is_ended_by(send_to(comm, Plane::kCollective, (child + root) % size, tag,
                                    mine + (offsets(child) - offsets(me)),
                                    offsets(child_end) - offsets(child), byte_type())))
      return outcome.error;
  }
  if (!out.is_in_place()) unpack_all(out, mine, offsets(me + 1) - offsets(me));
  return outcome.error;
}

}  // namespace

int scatter_binomial(Comm& comm, const Slices& in, const Typed& out, int root) noexcept {
  const int size = comm.size();
  const int tag = next_tag(comm);
  const bool is_root = comm.rank() == root;
  if (is_root && size == 1) {
    if (!out.is_in_place()) copy(in[0], out);
    return MPI_SUCCESS;
  }
  const std::int64_t slice = is_root ? in.bytes(root) : out.bytes();
  Bytes row;
  if (is_root) {
    if (!row.make(size * slice)) return MPI_ERR_NO_MEM;
    for (int i = 0; i < size; ++i) pack_all(in[(i + root) % size], row.data() + i * slice);
  }
  return scatter_row(
      comm, row.data(), [slice](int i) noexcept { return i * slice; }, out, root, tag);
}

int scatter_packed_binomial(Comm& comm, const unsigned char* packed, const std::int64_t* offsets,
                            const Typed& out) noexcept {
  return scatter_row(
      comm, packed, [offsets](int i) noexcept { return offsets[i]; }, out, 0, next_tag(comm));
}

}  // namespace vmpi
