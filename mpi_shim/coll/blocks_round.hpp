// SPDX-License-Identifier: BSD-2-Clause
// The first half of the reductions by a ring: P blocks go round, and each rank adds its part to what
// comes. Block i ends at rank i. REQUIRES: the operation commutes.
#pragma once

#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {

[[nodiscard]] inline Typed block_of(const Reduced& what, const void* at, int block,
                                    int size) noexcept {
  return what.part(at, what.count * block / size, what.count * (block + 1) / size);
}

/// Afterwards `whole` has block `rank` of the result. What this rank gives is there before, or it lies
/// apart and is read where it lies: then what comes goes to its place in `whole`, and nothing is copied.
inline void reduce_round(Plan& plan, const Reduced& what, void* whole) noexcept {
  const int size = plan.size();
  const int me = plan.rank();
  const bool is_apart = what.own() != whole;
  void* const incoming = is_apart ? nullptr : plan.elements(*what.type, what.count / size + 1);
  for (int i = 0; i < size - 1; ++i) {
    const int coming = around(me - i - 2, size);
    const Typed sum = block_of(what, whole, coming, size);
    const Typed ours = block_of(what, what.own(), coming, size);
    const Typed theirs = {is_apart ? sum.buffer : incoming, sum.count, what.type};
    plan.receive_some(around(me - 1, size), theirs);
    plan.send_some(around(me + 1, size),
                   block_of(what, i == 0 ? what.own() : whole, around(me - i - 1, size), size));
    plan.fence();
    if (sum.count != 0) plan.combine(*what.op, is_apart ? ours : theirs, sum.buffer);
  }
}

}  // namespace vmpi
