// SPDX-License-Identifier: BSD-2-Clause
// Reductions over several nodes by owners: the first ranks of each node, as many as the smallest node
// has, own a slice of the data each, which they reduce within their node, then with the owners of the same
// slice on other nodes. So all of them combine, and send between nodes, each a part.
//
// A slice is cut in segments. All ranks go through the same rounds for each, and begin the next one a
// round later: while one goes between nodes others go within them. REQUIRES: the operation commutes.
#pragma once

#include <span>

#include "mpi_shim/coll/halving.hpp"

namespace vmpi {

class OwnedReduction {
 public:
  /// `root` kForAll: all have the result.
  static constexpr int kForAll = -1;
  // A slice is cut in K segments.
  static constexpr std::int64_t kLeastSegment = 64 << 10;  ///< bytes
  static constexpr int kMostSegments = 8;

  OwnedReduction(Plan& plan, const Reduced& what, int root) noexcept;
  /// All steps of this rank.
  void add() noexcept;

 private:
  /// Between the owners of a slice on two nodes.
  struct Exchange {
    int to;
    int from;
    Range given;
    Range taken;
  };

  [[nodiscard]] bool owns() const noexcept { return place_ < owners_; }
  [[nodiscard]] int ranks_here() const noexcept { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] int owner_on(int node) const noexcept {
    return nodes_.ranks_of(node)[static_cast<std::size_t>(place_)];
  }
  [[nodiscard]] Range segment_of(int owner, int segment) const noexcept;
  [[nodiscard]] Range block_of(const Range& whole, int node) const noexcept;
  [[nodiscard]] Range halved(const Range& whole, int node, int bit) const noexcept;
  [[nodiscard]] Exchange reducing(const Range& whole, int round) const noexcept;
  [[nodiscard]] Exchange gathering(const Range& whole, int round) const noexcept;
  [[nodiscard]] Range reduced_on(const Range& whole, int node) const noexcept;
  [[nodiscard]] Typed own(const Range& range) const noexcept {
    return what_.part(what_.own(), range.begin, range.end);
  }
  [[nodiscard]] Typed sum(const Range& range) const noexcept {
    return what_.part(sum_, range.begin, range.end);
  }
  [[nodiscard]] Typed incoming(int segment, std::int64_t count) const noexcept;
  [[nodiscard]] Typed from_rank(int place, const Range& range) const noexcept;

  void combine(const Typed& in, const Typed& inout) noexcept {
    if (in.count != 0) plan_.combine(*what_.op, in, inout.buffer);
  }
  void add_round(int segment, int round) noexcept;
  void give_to_owners(int segment) noexcept;
  void combine_within(int segment) noexcept;
  void exchange(const Exchange& with, const Typed& to) noexcept;
  void give_to_node(int segment) noexcept;
  void give_to_root(int segment) noexcept;

  Plan& plan_;
  const Reduced& what_;
  const Nodes& nodes_;
  int root_;
  int me_;  ///< rank
  int node_;
  int place_;
  std::span<const int> ranks_;  ///< of this node
  int owners_;
  bool halves_;         ///< the number of nodes is a power of two
  int rounds_between_;  ///< in which owners of a slice reduce, and as many in which they gather
  int rounds_;
  int segments_;
  std::int64_t longest_;  ///< elements of a segment of a slice
  std::int64_t most_taken_;
  void* sum_ = nullptr;         ///< of an owner: where element 0 would be
  void* from_ranks_ = nullptr;  ///< what other ranks of this node give
  void* from_nodes_ = nullptr;  ///< what owners on other nodes give, for each segment
};

}  // namespace vmpi
