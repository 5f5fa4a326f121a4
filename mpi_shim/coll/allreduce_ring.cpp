// SPDX-License-Identifier: BSD-2-Clause
// P blocks go round a ring twice: to be added up, then to be known by all.
//
// Wins: very long data, any number of ranks.  Cost: 2 (P - 1) r + 2 n (P - 1) / P G + n (P - 1) / P c.
#include "mpi_shim/coll/blocks_round.hpp"

namespace vmpi {

void allreduce_ring(Plan& plan, const Operands& of) noexcept {
  const Reduced& what = *of.what;
  const int size = plan.size();
  const int me = plan.rank();
  if (size == 1) {
    if (what.send != MPI_IN_PLACE) plan.copy(what.typed(what.send), what.typed(what.receive));
    return;
  }
  reduce_round(plan, what, what.receive);
  for (int i = 0; i < size - 1; ++i) {
    plan.receive_some(around(me - 1, size),
                      block_of(what, what.receive, around(me - i - 1, size), size));
    plan.send_some(around(me + 1, size), block_of(what, what.receive, around(me - i, size), size));
    plan.fence();
  }
}

}  // namespace vmpi
