// SPDX-License-Identifier: BSD-2-Clause
// A binomial tree: each rank tells its parent when all below it have come, and rank 0 tells them.
//
// Wins: where many ranks share a processor, by fewer messages.  Cost: 2 log P r; 2 (P - 1) messages.
#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {

void barrier_tree(Plan& plan, const Operands&) noexcept {
  const Typed nothing = {nullptr, 0, &byte_type()};
  const int size = plan.size();
  const int me = plan.rank();
  int mask = 1;
  for (; mask < size && (me & mask) == 0; mask *= 2)
    if (me + mask < size) plan.receive(me + mask, nothing);
  plan.fence();
  if (me != 0) {
    plan.send(me - mask, nothing);
    plan.receive(me - mask, nothing);
    plan.fence();
  }
  for (mask /= 2; mask > 0; mask /= 2)
    if (me + mask < size) plan.send(me + mask, nothing);
  plan.fence();
}

}  // namespace vmpi
