// SPDX-License-Identifier: BSD-2-Clause
// The largest power of two of ranks takes part (fold.hpp), and those that rest get the result after.
// In round k two exchange what they have, which always covers neighbouring ranks, so that the order
// is kept and all compute alike.
//
// Wins: short data.  Cost: log P (r + (n - 1) G + n c), two messages more when P is no power of two.
#include <utility>

#include "mpi_shim/coll/fold.hpp"

namespace vmpi {

void allreduce_recursive_doubling(Plan& plan, const Operands& of) noexcept {
  const Reduced& what = *of.what;
  const Fold fold(plan.rank(), plan.size());
  void* result = nullptr;
  void* incoming = nullptr;
  if (!begin_folded_allreduce(plan, fold, what, result, incoming)) return;
  for (int mask = 1; mask < fold.active; mask *= 2) {
    const int place = fold.me ^ mask;
    const int peer = fold.rank_of(place);
    plan.receive(peer, what.typed(incoming));
    plan.send(peer, what.typed(result));
    plan.fence();
    if (place < fold.me) {
      plan.combine(*what.op, what.typed(incoming), result);
    } else {
      plan.combine(*what.op, what.typed(result), incoming);
      std::swap(result, incoming);
    }
  }
  if (result != what.receive) plan.copy(what.typed(result), what.typed(what.receive));
  if (fold.is_paired) plan.send(fold.partner, what.typed(what.receive));
  plan.fence();
}

}  // namespace vmpi
