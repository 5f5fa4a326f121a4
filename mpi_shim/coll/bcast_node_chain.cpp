// SPDX-License-Identifier: BSD-2-Clause
// A pipelined chain from the root through a leader of each node, and one from each leader through the
// ranks of its node: segments of s bytes go on while the next ones come. Segments are cut from the packed
// bytes, as types may differ between ranks.
//
// Wins: very long data, several ranks on each of several nodes.
// Cost: (N - 1) r + (S - 1) r' + (n / s + N + S - 3) s max(G, G'), S ranks on each of N nodes, r' and G' within one.
#include <algorithm>

#include "mpi_shim/coll/leaders.hpp"

namespace vmpi {

void bcast_node_chain(Plan& plan, const Operands& of) noexcept {
  constexpr int kUnderWay = 4;  // segments of the root, which waits for nothing
  const std::int64_t bytes = of.own->bytes();
  if (bytes == 0) return;
  const Led led(plan, of.root);
  const int nodes = led.nodes.count();
  const int behind_root = around(led.node - led.root_node(), nodes);
  const int behind_leader = around(led.place - led.leader, led.ranks_here());
  const auto rank_here = [&](int behind) noexcept {
    return led.ranks[static_cast<std::size_t>(around(led.leader + behind, led.ranks_here()))];
  };
  constexpr int kNobody = -1;
  const int next_leader = led.leads && behind_root + 1 < nodes
                              ? led.nodes.leaders()[around(led.node + 1, nodes)]
                              : kNobody;
  const int next_here =
      behind_leader + 1 < led.ranks_here() ? rank_here(behind_leader + 1) : kNobody;
  const AsBytes data(plan, *of.own);
  const auto segment = [&](std::int64_t begin) noexcept {
    return data.part(begin, std::min(begin + kPipelineSegment, bytes));
  };
  const auto hand_on = [&](std::int64_t begin) noexcept {
    // The longer way first.
    if (next_leader != kNobody) plan.send(next_leader, segment(begin));
    if (next_here != kNobody) plan.send(next_here, segment(begin));
  };
  if (plan.rank() == of.root) {
    data.take(plan);
    int under_way = 0;
    for (std::int64_t at = 0; at < bytes; at += kPipelineSegment) {
      hand_on(at);
      if (++under_way % kUnderWay == 0) plan.fence();
    }
    return plan.fence();
  }
  const int before = around(led.node - 1, nodes);
  int above = rank_here(behind_leader - 1);
  if (led.leads) above = before == led.root_node() ? of.root : led.nodes.leaders()[before];
  for (std::int64_t at = 0; at < bytes; at += kPipelineSegment) {
    plan.receive(above, segment(at));
    if (at != 0) hand_on(at - kPipelineSegment);
    plan.fence();
  }
  hand_on((bytes - 1) / kPipelineSegment * kPipelineSegment);
  plan.fence();
  data.give(plan);
}

}  // namespace vmpi
