// SPDX-License-Identifier: BSD-2-Clause
// Rabenseifner's: a reduction by halves (halving.hpp), and the way back, in which two ranks exchange
// what each has of the result.
//
// Wins: long data, P a power of two.  Cost: 2 log P r + 2 n (P - 1) / P G + n (P - 1) / P c; when P is
// none, two messages of n bytes more.
#include "mpi_shim/coll/halving.hpp"

namespace vmpi {

void allreduce_rabenseifner(Plan& plan, const Operands& of) noexcept {
  const Reduced& what = *of.what;
  const Fold fold(plan.rank(), plan.size());
  void* result = nullptr;
  void* incoming = nullptr;
  if (!begin_folded_allreduce(plan, fold, what, result, incoming)) return;
  reduce_by_halves(plan, fold, what, result, incoming, what.receive);
  for (int mask = fold.active / 2; mask > 0; mask /= 2) {
    const Range ours = range_after(fold.me, 2 * mask, what.count);
    const Range theirs = range_after(fold.me ^ mask, 2 * mask, what.count);
    const int peer = fold.rank_of(fold.me ^ mask);
    plan.receive_some(peer, what.part(what.receive, theirs.begin, theirs.end));
    plan.send_some(peer, what.part(what.receive, ours.begin, ours.end));
    plan.fence();
  }
  if (fold.is_paired) plan.send(fold.partner, what.typed(what.receive));
  plan.fence();
}

}  // namespace vmpi
