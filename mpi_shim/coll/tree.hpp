// SPDX-License-Identifier: BSD-2-Clause
// The two halves of a barrier by a binomial tree: all tell rank 0 that they have come, and rank 0 tells
// all that it knows.
#pragma once

#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {

/// Ranks that a rank's lowest set bit is above: what hangs below it. Of rank 0 all.
[[nodiscard]] inline int reach_of(int rank, int size) noexcept {
  int mask = 1;
  while (mask < size && (rank & mask) == 0) mask *= 2;
  return mask;
}

inline void tell_root(Plan& plan) noexcept {
  const Typed nothing = {nullptr, 0, &byte_type()};
  const int me = plan.rank();
  const int reach = reach_of(me, plan.size());
  for (int mask = 1; mask < reach; mask *= 2)
    if (me + mask < plan.size()) plan.receive(me + mask, nothing);
  plan.fence();
  if (me != 0) plan.send(me - reach, nothing);
}

inline void hear_of_root(Plan& plan) noexcept {
  const Typed nothing = {nullptr, 0, &byte_type()};
  const int me = plan.rank();
  const int reach = reach_of(me, plan.size());
  if (me != 0) plan.receive(me - reach, nothing);
  plan.fence();
  for (int mask = reach / 2; mask > 0; mask /= 2)
    if (me + mask < plan.size()) plan.send(me + mask, nothing);
  plan.fence();
}

}  // namespace vmpi
