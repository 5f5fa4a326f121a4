// SPDX-License-Identifier: BSD-2-Clause
// Every slice by a message of its own, all under way together. Each rank begins with its neighbour
// above, so that no rank is everybody's first.
//
// Wins: medium slices, slices that differ.  Cost: r + (P - 2) g + (P - 1) n G.
#include "mpi_shim/coll/put_aside.hpp"

namespace vmpi {

void alltoall_spread(Plan& plan, const Operands& of) noexcept {
  const int size = plan.size();
  const int me = plan.rank();
  const Given in(plan, of);
  if (of.in->buffer != MPI_IN_PLACE) plan.copy(in[me], (*of.out)[me]);
  for (int i = 1; i < size; ++i) {
    const int from = around(me - i, size);
    plan.receive_some(from, (*of.out)[from]);
  }
  for (int i = 1; i < size; ++i) {
    const int to = around(me + i, size);
    plan.send_some(to, in[to]);
  }
  plan.fence();
}

}  // namespace vmpi
