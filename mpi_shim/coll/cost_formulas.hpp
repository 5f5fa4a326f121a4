// SPDX-License-Identifier: BSD-2-Clause
// What an algorithm takes, in ns, by the formula that its head and the table (algorithm_table.cpp) name: as
// code, for all numbers of ranks and bytes. The same doubles at all ranks, so that all choose alike.
#pragma once

#include "mpi_shim/coll/select.hpp"
#include "mpi_shim/core/costs.hpp"

namespace vmpi {

/// LogGP of the messages of a level, in ns.
struct Level {
  double round;      ///< r = L + 2 o
  double gap;        ///< between two messages of one rank: g, or o where that is more
  double byte;       ///< G
  double handshake;  ///< of a long message, before its data

  [[nodiscard]] double time(double bytes) const noexcept;
};

/// A call as its formulas see it.
class CostedCall {
 public:
  CostedCall(const Shape& shape, const Costs& costs) noexcept;

  /// A message between any two ranks; of several nodes one that nothing else leaves its node with.
  [[nodiscard]] double message(double bytes) const noexcept { return across.time(bytes); }
  /// Within a node.
  [[nodiscard]] double message_here(double bytes) const noexcept { return here.time(bytes); }
  /// All ranks exchange with those so many ranks away: of one node they share its link.
  [[nodiscard]] double exchange(int distance, double bytes) const noexcept;
  /// A block of each rank goes to all others, by neighbours.
  [[nodiscard]] double ring(double bytes) const noexcept;
  /// Of ranks that stay active (fold.hpp).
  [[nodiscard]] int spacing() const noexcept { return active == ranks ? 1 : 2; }
  /// Of n bytes by halves, 1 / 2 with the nearest rank, 1 / 4 with the next ..., and what is combined.
  [[nodiscard]] double halves(double combine_of_byte) const noexcept;
  /// Messages that follow the first one, of one for each other rank.
  [[nodiscard]] double behind_first() const noexcept;
  /// What ranks beyond a power of two give first, and get last.
  [[nodiscard]] double fold_in(double combine_of_byte) const noexcept;
  [[nodiscard]] double fold_out() const noexcept;
  /// To each half of the ranks half of n bytes, and so on.
  [[nodiscard]] double scatter() const noexcept;

  Level across;
  Level here;
  double combine;  ///< a byte
  double copy;     ///< a byte
  double n;        ///< Shape::bytes
  double ranks;    ///< P
  double nodes;    ///< N
  double on_node;  ///< S
  int log_ranks;
  int log_nodes;
  int log_on_node;
  int active;  ///< the largest power of two of ranks
  bool are_nodes_alike;
};

using CostFormula = double(const CostedCall& call) noexcept;
/// What nothing is longer than: of calls that the algorithm is not for.
inline constexpr double kNever = 1e300;

namespace cost {

CostFormula barrier_dissemination, barrier_tree, barrier_leaders;
CostFormula bcast_binomial, bcast_scatter_allgather, bcast_chain, bcast_leaders, bcast_node_chain;
CostFormula rooted_binomial, rooted_linear;  // gather and scatter
CostFormula allgather_recursive_doubling, allgather_bruck, allgather_neighbour_exchange,
    allgather_ring, allgather_leaders, allgather_owners;
CostFormula alltoall_bruck, alltoall_spread, alltoall_pairwise;
CostFormula reduce_binomial, reduce_rabenseifner, reduce_ring, reduce_leaders, reduce_owners;
CostFormula allreduce_recursive_doubling, allreduce_rabenseifner, allreduce_ring,
    allreduce_reduce_bcast, allreduce_leaders, allreduce_owners;
CostFormula reduce_scatter_recursive_halving, reduce_scatter_pairwise, reduce_scatter_binomial;
CostFormula scan_recursive_doubling, scan_linear;

}  // namespace cost

}  // namespace vmpi
