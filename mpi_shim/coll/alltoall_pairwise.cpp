// SPDX-License-Identifier: BSD-2-Clause
// In round i each rank gives the one i above its slice, and gets one from the rank i below: one
// message each way at a time, so that no rank is sent to by several.
//
// Wins: long slices, many ranks.  Cost: (P - 1) (r + n G).
#include "mpi_shim/coll/put_aside.hpp"

namespace vmpi {

void alltoall_pairwise(Plan& plan, const Operands& of) noexcept {
  const int size = plan.size();
  const int me = plan.rank();
  const Given in(plan, of);
  if (of.in->buffer != MPI_IN_PLACE) plan.copy(in[me], (*of.out)[me]);
  for (int i = 1; i < size; ++i) {
    const int from = around(me - i, size);
    const int to = around(me + i, size);
    plan.receive_some(from, (*of.out)[from]);
    plan.send_some(to, in[to]);
    plan.fence();
  }
}

}  // namespace vmpi
