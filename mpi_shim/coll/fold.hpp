// SPDX-License-Identifier: BSD-2-Clause
// The largest power of two of ranks, for algorithms that want one: of the first pairs one rank gives
// its part to the other before, and rests. What a pair has is of neighbouring ranks, so that the
// order is kept.
#pragma once

#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {

struct Fold {
  int active = 1;
  int pairs;
  /// Place among those that are active; of one that rests, that of its partner.
  int me;
  bool is_paired;
  bool rests;
  int partner;     ///< of one that is paired
  int keeps = -1;  ///< rank that stays active whatever its place in its pair is

  Fold(int rank, int size, int kept = -1) noexcept : keeps(kept) {
    while (active <= size / 2) active *= 2;
    pairs = size - active;
    is_paired = rank < 2 * pairs;
    me = is_paired ? rank / 2 : rank - pairs;
    partner = rank ^ 1;
    rests = is_paired && rank_of(me) != rank;
  }
  [[nodiscard]] int rank_of(int place) const noexcept {
    if (place >= pairs) return place + pairs;
    return keeps == 2 * place ? keeps : 2 * place + 1;
  }
};

/// Gives our part to the partner (false: we rest), or combines the partner's with ours: `result` and
/// `incoming` change places as need be.
[[nodiscard]] inline bool fold_in(Plan& plan, const Fold& fold, const Reduced& what,
                                  const void* own, void*& result, void*& incoming) noexcept {
  if (fold.rests) {
    plan.send(fold.partner, what.typed(own));
    plan.fence();
    return false;
  }
  if (!fold.is_paired) return true;
  plan.receive(fold.partner, what.typed(incoming));
  plan.fence();
  if (fold.partner < plan.rank()) {
    plan.combine(*what.op, what.typed(incoming), result);
  } else {
    plan.combine(*what.op, what.typed(result), incoming);
    void* const swapped = result;
    result = incoming;
    incoming = swapped;
  }
  return true;
}

/// What an allreduce that folds begins with; false: all is planned, since this rank is alone or rests.
/// Else `result` is where what it has so far stands, and `incoming` the buffer for what comes.
[[nodiscard]] inline bool begin_folded_allreduce(Plan& plan, const Fold& fold, const Reduced& what,
                                                 void*& result, void*& incoming) noexcept {
  if (what.send != MPI_IN_PLACE) plan.copy(what.typed(what.send), what.typed(what.receive));
  if (plan.size() == 1) return false;
  result = what.receive;
  incoming = fold.rests ? nullptr : plan.elements(*what.type, what.count);
  if (fold_in(plan, fold, what, what.receive, result, incoming)) return true;
  plan.receive(fold.partner, what.typed(what.receive));
  plan.fence();
  return false;
}

}  // namespace vmpi
