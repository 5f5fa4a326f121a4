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

/// `whole` has our part of all blocks, and block `rank` of the result after it.
inline void reduce_round(Plan& plan, const Reduced& what, void* whole) noexcept {
  const int size = plan.size();
  const int me = plan.rank();
  void* const incoming = plan.elements(*what.type, what.count / size + 1);
  for (int i = 0; i < size - 1; ++i) {
    const Typed ours = block_of(what, whole, around(me - i - 2, size), size);
    const Typed theirs = {incoming, ours.count, what.type};
    plan.receive_some(around(me - 1, size), theirs);
    plan.send_some(around(me + 1, size), block_of(what, whole, around(me - i - 1, size), size));
    plan.fence();
    if (ours.count != 0) plan.combine(*what.op, theirs, ours.buffer);
  }
}

}  // namespace vmpi
