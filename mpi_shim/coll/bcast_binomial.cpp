// SPDX-License-Identifier: BSD-2-Clause
// A binomial tree. Ranks are counted from the root. Each receives from the one that lacks its lowest
// bit, then sends to those that have one lower bit more, the farthest first.
//
// Wins: short data, few ranks.  Cost: log P (r + (n - 1) G).
#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {

void bcast_binomial(Plan& plan, const Operands& of) noexcept {
  const int size = plan.size();
  const int me = around(plan.rank() - of.root, size);
  int mask = 1;
  while (mask < size && (me & mask) == 0) mask *= 2;
  if (me != 0) {
    plan.receive(around(me - mask + of.root, size), *of.own);
    plan.fence();
  }
  for (mask /= 2; mask > 0; mask /= 2)
    if (me + mask < size) plan.send(around(me + mask + of.root, size), *of.own);
  plan.fence();
}

}  // namespace vmpi
