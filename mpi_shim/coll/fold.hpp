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

}  // namespace vmpi
