// SPDX-License-Identifier: BSD-2-Clause
// Binomial trees: to the leader within each node, and among the leaders.
//
// Wins: short data, several ranks on each of several nodes.
// Cost: log S (r' + n (G' + c)) + log N (r + n (G + c)), S ranks on each of N nodes, r' and G' within one.
#include "mpi_shim/coll/leaders.hpp"

namespace vmpi {

LedReduction split(Plan& plan, const Led& led, const Reduced& what, bool is_for_all) noexcept {
  const bool is_result_here = is_for_all ? led.leads : plan.rank() == led.root;
  LedReduction parts = {what, what, is_for_all || !led.is_alone()};
  if (is_result_here) {
    if (parts.is_within) parts.among.send = MPI_IN_PLACE;
    return parts;
  }
  parts.within.send = what.own();
  parts.within.receive = nullptr;
  parts.among.receive = nullptr;
  if (!led.leads || !parts.is_within) return parts;
  parts.within.receive = plan.elements(*what.type, what.count);
  parts.among.send = parts.within.receive;
  return parts;
}

void reduce_leaders(Plan& plan, const Operands& of) noexcept {
  const Led led(plan, of.root);
  const LedReduction parts = split(plan, led, *of.what, false);
  if (parts.is_within) {
    const WithinNode within(plan, led);
    reduce_binomial(plan, {.root = led.leader, .what = &parts.within});
  }
  if (!led.leads) return;
  const AmongLeaders among(plan, led);
  reduce_binomial(plan, {.root = led.root_node(), .what = &parts.among});
}

}  // namespace vmpi
