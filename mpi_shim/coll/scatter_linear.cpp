// SPDX-License-Identifier: BSD-2-Clause
// The root sends to each rank directly: it alone knows how much goes to whom where slices differ.
//
// Wins: long slices, slices that differ.  Cost: r + (P - 2) g + (P - 1) n G.
#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {

void scatter_linear(Plan& plan, const Operands& of) noexcept {
  if (plan.rank() != of.root) {
    plan.receive_some(of.root, *of.own);
    return plan.fence();
  }
  for (int i = 0; i < plan.size(); ++i)
    if (i != of.root) plan.send_some(i, (*of.in)[i]);
  if (!of.own->is_in_place()) plan.copy((*of.in)[of.root], *of.own);
  plan.fence();
}

}  // namespace vmpi
