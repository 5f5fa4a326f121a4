// SPDX-License-Identifier: BSD-2-Clause
// A binomial tree to the leader within each node, recursive doubling among the leaders, and a binomial
// tree back.
//
// Wins: short data, several ranks on each of several nodes.
// Cost: log S (2 r' + n (2 G' + c)) + log N (r + n (G + c)), S ranks on each of N nodes, r' and G' within one.
#include "mpi_shim/coll/leaders.hpp"

namespace vmpi {

void allreduce_leaders(Plan& plan, const Operands& of) noexcept {
  const Led led(plan, 0);
  const LedReduction parts = split(plan, led, *of.what, true);
  {
    const WithinNode within(plan, led);
    reduce_binomial(plan, {.root = led.leader, .what = &parts.within});
  }
  if (led.leads) {
    const AmongLeaders among(plan, led);
    allreduce_recursive_doubling(plan, {.what = &parts.among});
  }
  const WithinNode within(plan, led);
  const Typed result = of.what->typed(of.what->receive);
  bcast_binomial(plan, {.root = led.leader, .own = &result});
}

}  // namespace vmpi
