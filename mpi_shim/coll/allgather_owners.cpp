// SPDX-License-Identifier: BSD-2-Clause
// Slices go round rings over the nodes: one ring of the first ranks of the nodes, one of the second, as many
// as the smallest node has ranks; the slices of further ranks go with those of the one that owns them. While
// a block comes from the node before, the last one goes on to the next node, and to the ranks of this one.
//
// Wins: long slices, several ranks on each of several nodes.
// Cost: N r + (N - 1) n G + N (S - 1) n G', S ranks on each of N nodes, G' within one; what is shorter is hidden.
#include <span>

#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {
namespace {

class OwnedGather {
 public:
  OwnedGather(Plan& plan, const Slices& out) noexcept
      : plan_(plan),
        out_(out),
        nodes_(*plan.nodes()),
        me_(plan.rank()),
        node_(nodes_.node_of(me_)),
        place_(nodes_.place_of(me_)),
        ranks_(nodes_.ranks_of(node_)),
        owners_(nodes_.fewest()) {}

  void give_to_owners() noexcept {
    const int here = static_cast<int>(ranks_.size());
    if (!owns()) plan_.send_some(ranks_[index(place_ % owners_)], out_[me_]);
    for (int i = place_ + owners_; i < here && owns(); i += owners_)
      plan_.receive_some(ranks_[index(i)], out_[ranks_[index(i)]]);
    plan_.fence();
  }

  /// Blocks of the node that is so many before this one come, and those of the one behind it go on.
  void go_round(int distance) noexcept {
    const int count = nodes_.count();
    const int known = around(node_ - distance + 1, count);
    if (owns() && distance < count) {
      const int from = around(node_ - 1, count);
      const int to = around(node_ + 1, count);
      each_slice(around(node_ - distance, count), place_, [&](int rank) noexcept {
        plan_.receive_some(nodes_.ranks_of(from)[index(place_)], out_[rank]);
      });
      each_slice(known, place_, [&](int rank) noexcept {
        plan_.send_some(nodes_.ranks_of(to)[index(place_)], out_[rank]);
      });
    }
    for (int owner = 0; owner < owners_; ++owner) {
      if (owner == place_) continue;
      each_slice(known, owner, [&](int rank) noexcept {
        if (rank != me_) plan_.receive_some(ranks_[index(owner)], out_[rank]);
      });
    }
    for (const int other : ranks_) {
      if (other == me_ || !owns()) continue;
      each_slice(known, place_, [&](int rank) noexcept {
        if (rank != other) plan_.send_some(other, out_[rank]);
      });
    }
    plan_.fence();
  }

 private:
  [[nodiscard]] static std::size_t index(int i) noexcept { return static_cast<std::size_t>(i); }
  [[nodiscard]] bool owns() const noexcept { return place_ < owners_; }

  /// Of a node, that an owner has.
  template <class Visit>
  void each_slice(int node, int owner, Visit visit) const noexcept {
    const std::span<const int> ranks = nodes_.ranks_of(node);
    for (std::size_t i = index(owner); i < ranks.size(); i += index(owners_)) visit(ranks[i]);
  }

  Plan& plan_;
  const Slices& out_;
  const Nodes& nodes_;
  int me_;
  int node_;
  int place_;
  std::span<const int> ranks_;  ///< of this node
  int owners_;
};

}  // namespace

void allgather_owners(Plan& plan, const Operands& of) noexcept {
  if (!of.own->is_in_place()) plan.copy(*of.own, (*of.out)[plan.rank()]);
  OwnedGather gather(plan, *of.out);
  gather.give_to_owners();
  for (int distance = 1; distance <= plan.nodes()->count(); ++distance) gather.go_round(distance);
}

}  // namespace vmpi
