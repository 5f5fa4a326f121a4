// SPDX-License-Identifier: BSD-2-Clause
// Each rank sends to the root directly, which alone knows how much comes from whom where slices
// differ.
//
// Wins: long slices, slices that differ.  Cost: r + (P - 2) g + (P - 1) n G at the root.
#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {

void gather_linear(Plan& plan, const Operands& of) noexcept {
  if (plan.rank() != of.root) {
    plan.send_some(of.root, *of.own);
    return plan.fence();
  }
  for (int i = 0; i < plan.size(); ++i)
    if (i != of.root) plan.receive_some(i, (*of.out)[i]);
  if (!of.own->is_in_place()) plan.copy(*of.own, (*of.out)[of.root]);
  plan.fence();
}

}  // namespace vmpi
