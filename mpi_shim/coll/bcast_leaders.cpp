// SPDX-License-Identifier: BSD-2-Clause
// A binomial tree of the leaders, and one within each node.
//
// Wins: short data, several ranks on each of several nodes.
// Cost: log N (r + n G) + log S (r' + n G'), S ranks on each of N nodes, r' and G' within one.
#include "mpi_shim/coll/leaders.hpp"

namespace vmpi {

void bcast_leaders(Plan& plan, const Operands& of) noexcept {
  const Led led(plan, of.root);
  Operands parts = of;
  if (led.leads) {
    const AmongLeaders among(plan, led);
    parts.root = led.root_node();
    bcast_binomial(plan, parts);
  }
  const WithinNode within(plan, led);
  parts.root = led.leader;
  bcast_binomial(plan, parts);
}

}  // namespace vmpi
