// SPDX-License-Identifier: BSD-2-Clause
// A row of packed slices, from the root to all ranks by a binomial tree: what scatter and
// reduce_scatter share.
#pragma once

#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {

/// `offsets(i)`: where the slice of the rank i above the root begins in the row, which the root has.
template <class Offsets>
void scatter_row(Plan& plan, unsigned char* row, Offsets offsets, const Typed& out,
                 int root) noexcept {
  const int size = plan.size();
  const int me = around(plan.rank() - root, size);
  int end = size;  // of the ranks that hang below us
  if (me != 0) {
    const int low_bit = me & -me;
    if (low_bit < size - me) end = me + low_bit;
    const std::int64_t bytes = offsets(end) - offsets(me);
    if (end - me == 1) {
      plan.receive(around(me - low_bit + root, size), out);
      return plan.fence();
    }
    row = plan.bytes(bytes);
    if (row == nullptr) return;
    plan.receive(around(me - low_bit + root, size), {row, bytes, &byte_type()});
    plan.fence();
  }
  int bit = 1;
  while (bit < end - me) bit *= 2;
  for (bit /= 2; bit > 0; bit /= 2) {
    const int child = me + bit;
    if (child >= end) continue;
    const int child_end = end - child < bit ? end : child + bit;
    plan.send(around(child + root, size), {row + (offsets(child) - offsets(me)),
                                           offsets(child_end) - offsets(child), &byte_type()});
  }
  if (!out.is_in_place()) plan.copy({row, offsets(me + 1) - offsets(me), &byte_type()}, out);
  plan.fence();
}

}  // namespace vmpi
