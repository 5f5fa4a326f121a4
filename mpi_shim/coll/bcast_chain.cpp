// SPDX-License-Identifier: BSD-2-Clause
// A pipelined chain from the root through all ranks: each hands a segment of s bytes on while the
// next one comes. Segments are cut from the packed bytes, as types may differ between ranks.
//
// Wins: very long data.  Cost: (P - 1) r + (n / s - 1) g + (n / s + P - 2) s G.
#include <algorithm>

#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {

void bcast_chain(Plan& plan, const Operands& of) noexcept {
  constexpr int kUnderWay = 4;  // of the root's sends, which wait for nothing
  const int size = plan.size();
  const std::int64_t bytes = of.own->bytes();
  if (size == 1 || bytes == 0) return;
  const int me = around(plan.rank() - of.root, size);
  const int above = around(plan.rank() - 1, size);
  const int below = around(plan.rank() + 1, size);
  const bool is_last = me == size - 1;
  const AsBytes data(plan, *of.own);
  const auto segment = [&](std::int64_t begin) noexcept {
    return data.part(begin, std::min(begin + kPipelineSegment, bytes));
  };
  if (me == 0) {
    data.take(plan);
    int under_way = 0;
    for (std::int64_t at = 0; at < bytes; at += kPipelineSegment) {
      plan.send(below, segment(at));
      if (++under_way % kUnderWay == 0) plan.fence();
    }
    return plan.fence();
  }
  for (std::int64_t at = 0; at < bytes; at += kPipelineSegment) {
    plan.receive(above, segment(at));
    if (!is_last && at != 0) plan.send(below, segment(at - kPipelineSegment));
    plan.fence();
  }
  if (!is_last) plan.send(below, segment((bytes - 1) / kPipelineSegment * kPipelineSegment));
  plan.fence();
  data.give(plan);
}

}  // namespace vmpi
