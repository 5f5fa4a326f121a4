// SPDX-License-Identifier: BSD-2-Clause
// Only the root knows how much goes to whom, so that it sends to each rank directly.
#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/coll/temporary.hpp"

namespace vmpi {

int scatter_linear(Comm& comm, const Slices& in, const Typed& out, int root) noexcept {
  const int tag = next_tag(comm);
  if (comm.rank() != root) {
    if (out.bytes() == 0) return MPI_SUCCESS;
    return receive_from(comm, Plane::kCollective, root, tag, out.buffer, out.count, *out.type);
  }
  Bundle bundle;
  if (!bundle.reserve(comm.size())) return MPI_ERR_NO_MEM;
  for (int i = 0; i < comm.size(); ++i) {
    const Typed slice = in[i];
    if (i == root || slice.bytes() == 0) continue;
    bundle.send(comm, i, tag, slice.buffer, slice.count, *slice.type);
  }
  if (!out.is_in_place()) copy(in[root], out);
  return bundle.finish();
}

}  // namespace vmpi
