// SPDX-License-Identifier: BSD-2-Clause
// The largest power of two of ranks takes part (fold.hpp). Two whose places differ in bit k, from the
// highest down, exchange the slices of each other's half of the ranks, so that each ends with the
// slices of its own pair; who rests gets his by his partner.
//
// Wins: short and medium slices.  Cost: log P r + n (P - 1) / P (G + c), n of all slices; when P is no
// power of two, a message of n bytes more.
#include "mpi_shim/coll/fold.hpp"

namespace vmpi {

void reduce_scatter_recursive_halving(Plan& plan, const Operands& of) noexcept {
  const Reduced& what = *of.what;
  const int size = plan.size();
  const int me = plan.rank();
  const Fold fold(me, size);
  const Typed own = {what.receive, of.counts[me], what.type};
  Array<std::int64_t> offsets;
  if (!offsets.resize(static_cast<std::size_t>(size) + 1)) return plan.fail();
  for (int i = 0; i < size; ++i)
    offsets[static_cast<std::size_t>(i) + 1] = offsets[static_cast<std::size_t>(i)] + of.counts[i];
  const auto slices = [&](const void* at, int from, int to) noexcept {
    return what.part(at, offsets[static_cast<std::size_t>(from)],
                     offsets[static_cast<std::size_t>(to)]);
  };
  // The first rank of the pair, or the rank, at a place.
  const auto first = [&](int place) noexcept {
    return place < fold.pairs ? 2 * place : place + fold.pairs;
  };
  void* result = fold.rests ? nullptr : plan.elements(*what.type, what.count);
  void* incoming = fold.rests ? nullptr : plan.elements(*what.type, what.count);
  if (!fold.rests) plan.copy(what.typed(what.own()), what.typed(result));
  if (!fold_in(plan, fold, what, what.own(), result, incoming)) {
    plan.receive_some(fold.partner, own);
    return plan.fence();
  }
  int low = 0;
  int high = fold.active;
  for (int mask = fold.active / 2; mask > 0; mask /= 2) {
    const int middle = low + mask;
    const bool keeps_upper = (fold.me & mask) != 0;
    const int peer = fold.rank_of(fold.me ^ mask);
    const int given = keeps_upper ? low : middle;
    (keeps_upper ? low : high) = middle;
    const Typed theirs = slices(incoming, first(low), first(high));
    const Typed ours = slices(result, first(low), first(high));
    plan.receive_some(peer, theirs);
    plan.send_some(peer, slices(result, first(given), first(given + mask)));
    plan.fence();
    if (ours.count != 0) plan.combine(*what.op, theirs, ours.buffer);
  }
  if (fold.is_paired) plan.send_some(fold.partner, slices(result, fold.partner, me));
  plan.copy(slices(result, me, me + 1), own);
  plan.fence();
}

}  // namespace vmpi
