// SPDX-License-Identifier: BSD-2-Clause
// A binomial tree: each rank tells its parent when all below it have come, and rank 0 tells them.
//
// Wins: where many ranks share a processor, by fewer messages.  Cost: 2 log P r; 2 (P - 1) messages.
#include "mpi_shim/coll/tree.hpp"

namespace vmpi {

void barrier_tree(Plan& plan, const Operands&) noexcept {
  tell_root(plan);
  hear_of_root(plan);
}

}  // namespace vmpi
