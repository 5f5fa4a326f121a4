// SPDX-License-Identifier: BSD-2-Clause
// Over several nodes by a leader of each: ranks give to theirs, the leaders do the collective among
// each other, and tell their ranks. So a message between nodes is one for all ranks of a node. The leader of
// a node is its first rank, of the root's node the root.
#pragma once

#include <span>

#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {

/// What a rank is in that.
struct Led {
  const Nodes& nodes;
  int root;
  int node;
  std::span<const int> ranks;  ///< of the node
  int place;                   ///< among these
  int leader;                  ///< place of the leader among these
  bool leads;

  /// REQUIRES: the plan lies on nodes.
  Led(const Plan& plan, int root_rank) noexcept
      : nodes(*plan.nodes()),
        root(root_rank),
        node(nodes.node_of(plan.rank())),
        ranks(nodes.ranks_of(node)),
        place(nodes.place_of(plan.rank())),
        leader(node == root_node() ? nodes.place_of(root) : 0),
        leads(place == leader) {}

  [[nodiscard]] int root_node() const noexcept { return nodes.node_of(root); }
  [[nodiscard]] bool is_alone() const noexcept { return ranks.size() == 1; }
  [[nodiscard]] int ranks_here() const noexcept { return static_cast<int>(ranks.size()); }
};

/// While it lives, a plan is that of a node's ranks.
class WithinNode : public Among {
 public:
  WithinNode(Plan& plan, const Led& led) noexcept
      : Among(plan, led.ranks.data(), led.place, led.ranks_here()) {}
};
/// While it lives, a plan is that of the leaders, by the numbers of their nodes. REQUIRES: led.leads.
class AmongLeaders : public Among {
 public:
  AmongLeaders(Plan& plan, const Led& led) noexcept
      : Among(plan, led.nodes.leaders(), led.node, led.nodes.count()) {
    put(led.root_node(), led.root);
  }
};

/// A reduction in two: what a node's ranks call theirs with, to the leader, and what the leaders call
/// theirs with. Leaders but the root have the first result in memory of the plan, unless it is for all:
/// then it is in the place of the last.
struct LedReduction {
  Reduced within;
  Reduced among;   ///< of a leader
  bool is_within;  ///< else the rank is alone and gives what it has where it is
};
[[nodiscard]] LedReduction split(Plan& plan, const Led& led, const Reduced& what,
                                 bool is_for_all) noexcept;

/// The data of an allgather, which its leader has packed: all slices by nodes.
struct PackedRow {
  unsigned char* row = nullptr;
  const std::int64_t* offsets = nullptr;  ///< of each place in Nodes::sorted, and of the end

  [[nodiscard]] Typed part(int from, int to) const noexcept {
    return {row + offsets[from], offsets[to] - offsets[from], &byte_type()};
  }
  [[nodiscard]] Typed whole(const Nodes& nodes) const noexcept { return part(0, nodes.ranks()); }
};
/// The parts of an allgather before the last: afterwards the leaders have all of the row. False: no
/// memory.
[[nodiscard]] bool gather_row(Plan& plan, const Led& led, const Operands& of,
                              PackedRow& row) noexcept;
/// And the part behind it: from the row to where slices belong.
void spread_row(Plan& plan, const Led& led, const Operands& of, const PackedRow& row) noexcept;

}  // namespace vmpi
