// SPDX-License-Identifier: BSD-2-Clause
// The tree of bcast_binomial.cpp upwards: what a rank has stands for itself and the ranks above it,
// so that the order of ranks is kept when they are counted from 0. An operation that does not
// commute is reduced to rank 0, which tells the root.
//
// Wins: short data.  Cost: log P (r + (n - 1) G + n c), and a message more where the order counts.
#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {

void reduce_binomial(Plan& plan, const Operands& of) noexcept {
  const Reduced& what = *of.what;
  const int size = plan.size();
  const int top = what.op->is_commutative ? of.root : 0;
  const int me = around(plan.rank() - top, size);
  const auto rank_of = [&](int relative) noexcept { return around(relative + top, size); };

  int below = 0;  // ranks that send to us
  for (int mask = 1; mask < size && (me & mask) == 0; mask *= 2)
    if (me + mask < size) ++below;
  // What comes is taken by two places in turn, and becomes the result so far. The last of the root's is
  // where the result is wanted, unless our own part is there still.
  const bool is_top = me == 0 && top == of.root;
  const bool is_in_place = what.own() == what.receive;
  void* places[2] = {};
  for (int i = 0; i < 2 && i < below; ++i) {
    const bool is_last = i == (below - 1) % 2;
    places[i] = is_top && is_last && (i == 1 || !is_in_place)
                    ? what.receive
                    : plan.elements(*what.type, what.count);
  }
  const void* result = what.own();
  int taken = 0;
  int mask = 1;
  for (; mask < size && (me & mask) == 0; mask *= 2) {
    if (me + mask >= size) continue;
    void* const place = places[taken++ % 2];
    plan.receive(rank_of(me + mask), what.typed(place));
    plan.fence();
    plan.combine(*what.op, what.typed(result), place);
    result = place;
  }
  if (me != 0) plan.send(rank_of(me - mask), what.typed(result));
  if (top == of.root) {
    if (is_top && result != what.receive) plan.copy(what.typed(result), what.typed(what.receive));
  } else if (plan.rank() == top) {
    plan.send(of.root, what.typed(result));
  } else if (plan.rank() == of.root) {
    plan.fence();  // what has gone up may have been in the buffer
    plan.receive(top, what.typed(what.receive));
  }
  plan.fence();
}

}  // namespace vmpi
