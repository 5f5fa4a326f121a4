// SPDX-License-Identifier: BSD-2-Clause
// A reduction to rank 0 by a binomial tree, and a broadcast by the same one.
//
// Wins: where many ranks share a processor, by fewer messages.  Cost: 2 log P (r + (n - 1) G) + log P n c;
// 2 (P - 1) messages.
#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {

void allreduce_reduce_bcast(Plan& plan, const Operands& of) noexcept {
  const Typed result = of.what->typed(of.what->receive);
  Operands parts;
  parts.what = of.what;
  parts.own = &result;
  reduce_binomial(plan, parts);
  bcast_binomial(plan, parts);
}

}  // namespace vmpi
