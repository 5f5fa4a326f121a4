// SPDX-License-Identifier: BSD-2-Clause
// The tree of bcast_binomial.cpp upwards: what a rank has stands for itself and the ranks above it,
// so that the order of ranks is kept when they are counted from 0. An operation that does not
// commute is reduced to rank 0, which tells the root.
//
// Wins: short data.  Cost: log P (r + (n - 1) G + n c), and a message more where the order counts.
#include <utility>

#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {

void reduce_binomial(Plan& plan, const Operands& of) noexcept {
  const Reduced& what = *of.what;
  const int size = plan.size();
  const int top = what.op->is_commutative ? of.root : 0;
  const int me = around(plan.rank() - top, size);
  const auto rank_of = [&](int relative) noexcept { return around(relative + top, size); };

  // Our result so far is in `result`; `spare` takes what comes, and then the next result.
  const void* result = what.own();
  void* spare = nullptr;
  void* next_spare = nullptr;
  if (me % 2 == 0 && me + 1 < size) {
    spare = plan.elements(*what.type, what.count);
    // One that has only one below it needs no second one.
    if (me % 4 == 0 && me + 2 < size) next_spare = plan.elements(*what.type, what.count);
  }
  int mask = 1;
  for (; mask < size && (me & mask) == 0; mask *= 2) {
    if (me + mask >= size) continue;
    plan.receive(rank_of(me + mask), what.typed(spare));
    plan.fence();
    plan.combine(*what.op, what.typed(result), spare);
    result = spare;
    std::swap(spare, next_spare);
  }
  if (me != 0) plan.send(rank_of(me - mask), what.typed(result));
  if (top == of.root) {
    if (me == 0 && result != what.receive) plan.copy(what.typed(result), what.typed(what.receive));
  } else if (plan.rank() == top) {
    plan.send(of.root, what.typed(result));
  } else if (plan.rank() == of.root) {
    plan.fence();  // what has gone up may have been in the buffer
    plan.receive(top, what.typed(what.receive));
  }
  plan.fence();
}

}  // namespace vmpi
