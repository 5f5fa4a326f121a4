// SPDX-License-Identifier: BSD-2-Clause
// Ranks are counted from the root. Each collects the packed slices of those above it whose bits
// below its own lowest one it lacks, and hands the row on; the root unpacks.
#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/coll/temporary.hpp"

namespace vmpi {
namespace {

/// How many ranks hang below one, it among them.
[[nodiscard]] int subtree(int relative, int size) noexcept {
  if (relative == 0) return size;
  const int low_bit = relative & -relative;
  return low_bit < size - relative ? low_bit : size - relative;
}

}  // namespace

int gather_binomial(Comm& comm, const Typed& in, const Slices& out, int root) noexcept {
  const int size = comm.size();
  const int tag = next_tag(comm);
  const bool is_root = comm.rank() == root;
  if (is_root && size == 1) {
    if (!in.is_in_place()) copy(in, out[0]);
    return MPI_SUCCESS;
  }
  const int me = (comm.rank() - root + size) % size;
  const Typed own = in.is_in_place() ? out[root] : in;
  const std::int64_t slice = is_root ? out.bytes(root) : own.bytes();
  const int below = subtree(me, size);
  Bytes row;
  if (!row.make(below * slice)) return MPI_ERR_NO_MEM;
  if (!is_root)
    pack_all(own, row.data());
  else if (!in.is_in_place())
    copy(in, out[root]);

  Bundle bundle;
  if (!bundle.reserve(32)) return MPI_ERR_NO_MEM;
  for (int bit = 1; bit < below; bit *= 2) {
    bundle.receive(comm, (me + bit + root) % size, tag, row.data() + bit * slice,
                   subtree(me + bit, size) * slice, byte_type());
    if (bit > below / 2) break;
  }
  const int error = bundle.finish();
  if (!is_root) {
    const int parent = (me - (me & -me) + root) % size;
    const int sent =
        send_to(comm, Plane::kCollective, parent, tag, row.data(), below * slice, byte_type());
    return error != MPI_SUCCESS ? error : sent;
  }
  if (error != MPI_SUCCESS) return error;
  for (int i = 1; i < size; ++i) unpack_all(out[(i + root) % size], row.data() + i * slice, slice);
  return MPI_SUCCESS;
}

}  // namespace vmpi
