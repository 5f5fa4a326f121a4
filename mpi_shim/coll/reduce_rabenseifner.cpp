// SPDX-License-Identifier: BSD-2-Clause
// Rabenseifner's: a reduction by halves (halving.hpp), whose ranges the root gathers by the tree of
// the same bits.
//
// Wins: long data.  Cost: 2 log P r + 2 n (P - 1) / P G + n (P - 1) / P c; when P is no power of two,
// a message of n bytes more.
#include "mpi_shim/coll/halving.hpp"

namespace vmpi {

void reduce_rabenseifner(Plan& plan, const Operands& of) noexcept {
  const Reduced& what = *of.what;
  const bool is_root = plan.rank() == of.root;
  const Fold fold(plan.rank(), plan.size(), of.root);
  void* whole = nullptr;
  void* incoming = nullptr;
  if (!fold.rests) {
    whole = is_root ? what.receive : plan.elements(*what.type, what.count);
    if (what.own() != whole) plan.copy(what.typed(what.own()), what.typed(whole));
    if (plan.size() == 1) return;
    incoming = plan.elements(*what.type, what.count);
  }
  void* result = whole;
  if (!fold_in(plan, fold, what, what.own(), result, incoming)) return;
  reduce_by_halves(plan, fold, what, result, incoming, whole);
  const int top = Fold(of.root, plan.size(), of.root).me;
  for (int mask = fold.active / 2; mask > 0; mask /= 2) {
    const int peer = fold.rank_of(fold.me ^ mask);
    const bool takes = ((fold.me ^ top) & mask) == 0;
    const Range range = range_after(takes ? fold.me ^ mask : fold.me, 2 * mask, what.count);
    const Typed part = what.part(whole, range.begin, range.end);
    if (takes)
      plan.receive_some(peer, part);
    else
      plan.send_some(peer, part);
    plan.fence();
    if (!takes) return;
  }
}

}  // namespace vmpi
