// SPDX-License-Identifier: BSD-2-Clause
// Which ranks share a node, or within a host a cache: what collectives of several levels are composed by.
#pragma once

#include <cstdint>
#include <span>

#include "mpi_shim/core/array.hpp"

namespace vmpi {

/// The ranks of one communicator by nodes, which are numbered in the order of their first ranks.
class Nodes {
 public:
  /// `numbers`: of each rank's node, whatever they are from 0 up to `ranks` - 1. False: no memory.
  [[nodiscard]] bool set(const int* numbers, int ranks) noexcept;

  [[nodiscard]] int ranks() const noexcept { return static_cast<int>(node_of_.size()); }
  [[nodiscard]] int count() const noexcept { return static_cast<int>(leaders_.size()); }
  [[nodiscard]] int node_of(int rank) const noexcept { return node_of_[index(rank)]; }
  /// Of one node, in their order.
  [[nodiscard]] std::span<const int> ranks_of(int node) const noexcept {
    return {sorted_.data() + begins_[index(node)],
            index(begins_[index(node) + 1] - begins_[index(node)])};
  }
  /// Place of a rank among those of its node.
  [[nodiscard]] int place_of(int rank) const noexcept { return place_of_[index(rank)]; }
  /// The first rank of each node.
  [[nodiscard]] const int* leaders() const noexcept { return leaders_.data(); }
  /// All ranks, those of a node together.
  [[nodiscard]] const int* sorted() const noexcept { return sorted_.data(); }
  /// Where the ranks of a node begin in `sorted`; of count(): where they all end.
  [[nodiscard]] int begin_of(int node) const noexcept { return begins_[index(node)]; }
  /// Ranks of the smallest node.
  [[nodiscard]] int fewest() const noexcept { return fewest_; }
  /// And of the largest.
  [[nodiscard]] int most() const noexcept { return most_; }
  /// None has twice as many ranks as another.
  [[nodiscard]] bool are_alike() const noexcept { return most_ < 2 * fewest_; }
  /// There are several, and one has several ranks: else there is nothing to compose.
  [[nodiscard]] bool are_composed() const noexcept { return count() > 1 && count() < ranks(); }
  /// Each has ranks that follow one another: so an order of ranks is one of nodes.
  [[nodiscard]] bool are_in_order() const noexcept { return are_in_order_; }

 private:
  [[nodiscard]] static std::size_t index(int i) noexcept { return static_cast<std::size_t>(i); }

  Array<int> node_of_;
  Array<int> place_of_;
  Array<int> leaders_;
  Array<int> sorted_;
  Array<int> begins_;
  int fewest_ = 0;
  int most_ = 0;
  bool are_in_order_ = true;
};

/// The number of each rank's node, by a text such as "0-3:4,6-7", of two nodes: ranks as lists and
/// ranges, a colon between nodes. Null, or what is wrong with the text, which is written to `wrong`.
[[nodiscard]] const char* parse_nodes(const char* text, int ranks, Array<int>& numbers,
                                      std::span<char> wrong) noexcept;
/// The number of each rank's group, ranks that share a cache, and of the NUMA node that the group is of, by
/// a text such as "0-1:2-3/4-7": a colon between groups, a slash between those of one node and the next.
[[nodiscard]] const char* parse_groups(const char* text, int ranks, Array<int>& numbers,
                                       Array<int>& nodes, std::span<char> wrong) noexcept;
/// Of nodes, by a launcher's PMI_process_mapping, "(vector,(first node,nodes,ranks of each), ...)", which
/// begins again where it ends before the ranks do. False: it is none.
[[nodiscard]] bool parse_process_mapping(const char* text, int ranks, Array<int>& numbers) noexcept;

}  // namespace vmpi
