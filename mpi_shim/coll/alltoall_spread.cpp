// SPDX-License-Identifier: BSD-2-Clause
// Every slice by a message of its own. Each rank begins with its neighbour above, so that no rank is
// everybody's first.
#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/coll/temporary.hpp"

namespace vmpi {

int alltoall_spread(Comm& comm, const Slices& in, const Slices& out) noexcept {
  const int size = comm.size();
  const int me = comm.rank();
  const int tag = next_tag(comm);
  if (size > 1 << 24) return MPI_ERR_NO_MEM;
  Bundle bundle;
  if (!bundle.reserve(2 * size)) return MPI_ERR_NO_MEM;
  for (int i = 1; i < size; ++i) {
    const int from = (me - i + size) % size;
    const Typed slice = out[from];
    if (slice.bytes() != 0) bundle.receive(comm, from, tag, slice.buffer, slice.count, *slice.type);
  }
  for (int i = 1; i < size; ++i) {
    const int to = (me + i) % size;
    const Typed slice = in[to];
    if (slice.bytes() != 0) bundle.send(comm, to, tag, slice.buffer, slice.count, *slice.type);
  }
  copy(in[me], out[me]);
  return bundle.finish();
}

int alltoall_in_place(Comm& comm, const Slices& out) noexcept {
  const int size = comm.size();
  Array<std::int64_t> offsets;
  if (!offsets.resize(static_cast<std::size_t>(size) + 1)) return MPI_ERR_NO_MEM;
  for (int i = 0; i < size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    offsets[at + 1] = offsets[at] + out.bytes(i);
  }
  Bytes packed;
  if (!packed.make(offsets[static_cast<std::size_t>(size)])) return MPI_ERR_NO_MEM;
  Slices in;
  in.form = Slices::Form::kPacked;
  in.buffer = packed.data();
  in.offsets = offsets.data();
  for (int i = 0; i < size; ++i)
    pack_all(out[i], packed.data() + offsets[static_cast<std::size_t>(i)]);
  return alltoall_spread(comm, in, out);
}

}  // namespace vmpi
