// SPDX-License-Identifier: BSD-2-Clause
// Only the root knows how much comes from whom, so that each rank sends to it directly.
#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/coll/temporary.hpp"

namespace vmpi {

int gather_linear(Comm& comm, const Typed& in, const Slices& out, int root) noexcept {
  const int tag = next_tag(comm);
  if (comm.rank() != root) {
    if (in.bytes() == 0) return MPI_SUCCESS;
    return send_to(comm, Plane::kCollective, root, tag, in.buffer, in.count, *in.type);
  }
  Bundle bundle;
  if (!bundle.reserve(comm.size())) return MPI_ERR_NO_MEM;
  for (int i = 0; i < comm.size(); ++i) {
    const Typed slice = out[i];
    if (i == root || slice.bytes() == 0) continue;
    bundle.receive(comm, i, tag, slice.buffer, slice.count, *slice.type);
  }
  if (!in.is_in_place()) copy(in, out[root]);
  return bundle.finish();
}

}  // namespace vmpi
