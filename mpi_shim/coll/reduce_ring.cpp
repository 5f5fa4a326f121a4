// SPDX-License-Identifier: BSD-2-Clause
// P blocks go round a ring to be added up, and from each rank to the root.
//
// Wins: very long data, P no power of two.  Cost: (P - 1) (r + g) + 2 n (P - 1) / P G + n (P - 1) / P c.
#include "mpi_shim/coll/blocks_round.hpp"

namespace vmpi {

void reduce_ring(Plan& plan, const Operands& of) noexcept {
  const Reduced& what = *of.what;
  const int size = plan.size();
  const bool is_root = plan.rank() == of.root;
  void* const whole = is_root ? what.receive : plan.elements(*what.type, what.count);
  if (size == 1) {
    if (what.own() != whole) plan.copy(what.typed(what.own()), what.typed(whole));
    return;
  }
  reduce_round(plan, what, whole);
  if (!is_root) {
    plan.send_some(of.root, block_of(what, whole, plan.rank(), size));
    return plan.fence();
  }
  for (int i = 0; i < size; ++i)
    if (i != of.root) plan.receive_some(i, block_of(what, whole, i, size));
  plan.fence();
}

}  // namespace vmpi
