// SPDX-License-Identifier: BSD-2-Clause
// The first half of Rabenseifner's algorithms: two ranks whose places differ in bit k exchange halves
// of what they have and combine the other half, from bit 0 up. What is combined always covers
// neighbouring ranks, so that the order is kept.
#pragma once

#include <utility>

#include "mpi_shim/coll/fold.hpp"

namespace vmpi {

struct Range {
  std::int64_t begin;
  std::int64_t end;
};

/// Elements that the rank at `place` has after the rounds of all bits below `bit`.
[[nodiscard]] inline Range range_after(int place, int bit, std::int64_t count) noexcept {
  Range range = {0, count};
  for (int mask = 1; mask < bit; mask *= 2) {
    const std::int64_t middle = range.begin + (range.end - range.begin) / 2;
    ((place & mask) != 0 ? range.begin : range.end) = middle;
  }
  return range;
}

/// Our range of the result comes to `whole`, which is `result` or `incoming`.
inline void reduce_by_halves(Plan& plan, const Fold& fold, const Reduced& what, void* result,
                             void* incoming, void* whole) noexcept {
  for (int mask = 1; mask < fold.active; mask *= 2) {
    const int place = fold.me ^ mask;
    const int peer = fold.rank_of(place);
    const Range kept = range_after(fold.me, 2 * mask, what.count);
    const Range given = range_after(place, 2 * mask, what.count);
    plan.receive_some(peer, what.part(incoming, kept.begin, kept.end));
    plan.send_some(peer, what.part(result, given.begin, given.end));
    plan.fence();
    const Typed theirs = what.part(incoming, kept.begin, kept.end);
    const Typed ours = what.part(result, kept.begin, kept.end);
    if (theirs.count == 0) continue;
    if (place < fold.me) {
      plan.combine(*what.op, theirs, ours.buffer);
    } else {
      plan.combine(*what.op, ours, theirs.buffer);
      std::swap(result, incoming);
    }
  }
  const Range own = range_after(fold.me, fold.active, what.count);
  if (result != whole && own.begin != own.end)
    plan.copy(what.part(result, own.begin, own.end), what.part(whole, own.begin, own.end));
}

}  // namespace vmpi
