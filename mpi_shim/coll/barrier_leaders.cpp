// SPDX-License-Identifier: BSD-2-Clause
// The ranks of a node tell its leader, the leaders meet by dissemination, and tell their ranks.
//
// Wins: several ranks on each of several nodes.  Cost: 2 log S r' + log N r, S ranks on each of N nodes, r' within one.
#include "mpi_shim/coll/leaders.hpp"
#include "mpi_shim/coll/tree.hpp"

namespace vmpi {

void barrier_leaders(Plan& plan, const Operands& of) noexcept {
  const Led led(plan, 0);
  {
    const WithinNode within(plan, led);
    tell_root(plan);
  }
  if (led.leads) {
    const AmongLeaders among(plan, led);
    barrier_dissemination(plan, of);
  }
  const WithinNode within(plan, led);
  hear_of_root(plan);
}

}  // namespace vmpi
