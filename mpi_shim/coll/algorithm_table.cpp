// SPDX-License-Identifier: BSD-2-Clause
// The algorithms of each collective: name, what it wants of a call, when it wins, and its cost as text and
// as code. Where two take as long the earlier one is chosen.
#include <string_view>

#include "mpi_shim/coll/cost_formulas.hpp"
#include "mpi_shim/coll/select.hpp"

namespace vmpi {
namespace {

// Algorithms. r = L + 2 o of LogGP, G the gap between bytes, c the time to combine a byte.

constexpr KnownAlgorithm kBarriers[] = {
    {"dissemination", barrier_dissemination, kNothing, "each rank has a processor", "log P r",
     cost::barrier_dissemination},
    {"tree", barrier_tree, kNothing, "many ranks share a processor: fewest messages", "2 log P r",
     cost::barrier_tree},
    {"leaders", barrier_leaders, kNodes, "several ranks on each of several nodes",
     "2 log S r' + log N r", cost::barrier_leaders},
};
constexpr KnownAlgorithm kBcasts[] = {
    {"binomial", bcast_binomial, kNothing, "short data, few ranks", "log P (r + n G)",
     cost::bcast_binomial},
    {"scatter_allgather", bcast_scatter_allgather, kNothing, "long data, many ranks",
     "(log P + P - 1) r + 2 n (P - 1) / P G", cost::bcast_scatter_allgather},
    {"chain", bcast_chain, kNothing, "very long data, in segments of s = 64 KiB",
     "(P - 1) r + (n / s - 1) g + (n / s + P - 2) s G", cost::bcast_chain},
    {"leaders", bcast_leaders, kNodes, "short data, several ranks on each of several nodes",
     "log N (r + n G) + log S (r' + n G')", cost::bcast_leaders},
    {"node_chain", bcast_node_chain, kNodes,
     "very long data, several ranks on each of several nodes",
     "(N - 1) r + (S - 1) r' + (n / s + N + S - 3) s max(G, G')", cost::bcast_node_chain},
};
constexpr KnownAlgorithm kGathers[] = {
    {"binomial", gather_binomial, kAlikeSlices, "short slices", "log P r + (P - 1) n G",
     cost::rooted_binomial},
    {"linear", gather_linear, kNothing, "long slices, slices that differ",
     "r + (P - 2) g + (P - 1) n G", cost::rooted_linear},
};
constexpr KnownAlgorithm kScatters[] = {
    {"binomial", scatter_binomial, kAlikeSlices, "short slices", "log P r + (P - 1) n G",
     cost::rooted_binomial},
    {"linear", scatter_linear, kNothing, "long slices, slices that differ",
     "r + (P - 2) g + (P - 1) n G", cost::rooted_linear},
};
constexpr KnownAlgorithm kAllgathers[] = {
    {"recursive_doubling", allgather_recursive_doubling, kPowerOfTwo, "short and medium slices",
     "log P r + N (P - 1) / P G", cost::allgather_recursive_doubling},
    {"bruck", allgather_bruck, kNothing, "short slices, any number of ranks",
     "log P r + N (P - 1) / P G, and a copy", cost::allgather_bruck},
    {"neighbour_exchange", allgather_neighbour_exchange, kEvenRanks, "long slices",
     "P / 2 r + N (P - 1) / P G", cost::allgather_neighbour_exchange},
    {"ring", allgather_ring, kNothing, "long slices, any number of ranks",
     "(P - 1) r + N (P - 1) / P G", cost::allgather_ring},
    {"leaders", allgather_leaders, kNodes, "short slices, several ranks on each of several nodes",
     "r' + N G + log N r + log S (r' + n G')", cost::allgather_leaders},
    {"owners", allgather_owners, kNodes, "long slices, several ranks on each of several nodes",
     "N r + (N - 1) n G + N (S - 1) n G'", cost::allgather_owners},
};
constexpr KnownAlgorithm kAlltoalls[] = {
    {"bruck", alltoall_bruck, kAlikeSlices, "short slices, many ranks", "log P (r + n P / 2 G)",
     cost::alltoall_bruck},
    {"spread", alltoall_spread, kNothing, "medium slices, slices that differ",
     "r + (P - 2) g + (P - 1) n G", cost::alltoall_spread},
    {"pairwise", alltoall_pairwise, kNothing, "long slices, many ranks", "(P - 1) (r + n G)",
     cost::alltoall_pairwise},
};
constexpr KnownAlgorithm kReduces[] = {
    {"binomial", reduce_binomial, kNothing, "short data", "log P (r + n G + n c)",
     cost::reduce_binomial},
    {"rabenseifner", reduce_rabenseifner, kNothing, "long data",
     "2 log P r + 2 n (P - 1) / P G + n (P - 1) / P c", cost::reduce_rabenseifner},
    {"ring", reduce_ring, kCommutative, "very long data, P no power of two",
     "(P - 1) (r + g) + 2 n (P - 1) / P G + n (P - 1) / P c", cost::reduce_ring},
    {"leaders", reduce_leaders, kNodes | kOrderOfNodes,
     "short data, several ranks on each of several nodes",
     "log S (r' + n (G' + c)) + log N (r + n (G + c))", cost::reduce_leaders},
    {"owners", reduce_owners, kNodes | kCommutative,
     "long data, several ranks on each of several nodes",
     "(log N + K + 1) r + n (1 + 1 / S) G + n (S - 1) / S G' + n c", cost::reduce_owners},
};
constexpr KnownAlgorithm kAllreduces[] = {
    {"recursive_doubling", allreduce_recursive_doubling, kNothing, "short data",
     "log P (r + n G + n c)", cost::allreduce_recursive_doubling},
    {"rabenseifner", allreduce_rabenseifner, kNothing, "long data, P a power of two",
     "2 log P r + 2 n (P - 1) / P G + n (P - 1) / P c", cost::allreduce_rabenseifner},
    {"ring", allreduce_ring, kCommutative, "very long data, any number of ranks",
     "2 (P - 1) r + 2 n (P - 1) / P G + n (P - 1) / P c", cost::allreduce_ring},
    {"reduce_bcast", allreduce_reduce_bcast, kNothing,
     "many ranks share a processor: fewest messages", "2 log P (r + n G) + log P n c",
     cost::allreduce_reduce_bcast},
    {"leaders", allreduce_leaders, kNodes | kOrderOfNodes,
     "short data, several ranks on each of several nodes",
     "log S (2 r' + n (2 G' + c)) + log N (r + n (G + c))", cost::allreduce_leaders},
    {"owners", allreduce_owners, kNodes | kCommutative,
     "long data, several ranks on each of several nodes",
     "(2 log N + K + 1) r + 2 n / S (N - 1) / N G + 2 n (S - 1) / S G' + n c",
     cost::allreduce_owners},
};
constexpr KnownAlgorithm kReduceScatters[] = {
    {"recursive_halving", reduce_scatter_recursive_halving, kCommutative, "short and medium slices",
     "log P r + N (P - 1) / P (G + c)", cost::reduce_scatter_recursive_halving},
    {"pairwise", reduce_scatter_pairwise, kCommutative, "long slices",
     "(P - 1) r + N (P - 1) / P (G + c)", cost::reduce_scatter_pairwise},
    {"binomial", reduce_scatter_binomial, kNothing, "operations that do not commute",
     "2 log P r + (log P + 1) N G + log P N c", cost::reduce_scatter_binomial},
};
constexpr KnownAlgorithm kScans[] = {
    {"recursive_doubling", scan_recursive_doubling, kNothing, "three ranks and more",
     "log P (r + n G + 2 n c)", cost::scan_recursive_doubling},
    {"linear", scan_linear, kNothing, "two ranks, or many that share a processor",
     "(P - 1) (r + n G + n c)", cost::scan_linear},
};
constexpr KnownAlgorithm kExscans[] = {
    {"recursive_doubling", exscan_recursive_doubling, kNothing, "three ranks and more",
     "log P (r + n G + 2 n c)", cost::scan_recursive_doubling},
    {"linear", exscan_linear, kNothing, "two ranks, or many that share a processor",
     "(P - 1) (r + n G + n c)", cost::scan_linear},
};

constexpr CollectiveFacts kFacts[kCollectives] = {
    {"barrier", "VERBATIM_COLL_BARRIER", "none", kBarriers},
    {"bcast", "VERBATIM_COLL_BCAST", "the data", kBcasts},
    {"gather", "VERBATIM_COLL_GATHER", "a slice", kGathers},
    {"scatter", "VERBATIM_COLL_SCATTER", "a slice", kScatters},
    {"allgather", "VERBATIM_COLL_ALLGATHER", "all slices together", kAllgathers},
    {"alltoall", "VERBATIM_COLL_ALLTOALL", "a slice", kAlltoalls},
    {"reduce", "VERBATIM_COLL_REDUCE", "the data of a rank", kReduces},
    {"allreduce", "VERBATIM_COLL_ALLREDUCE", "the data of a rank", kAllreduces},
    {"reduce_scatter", "VERBATIM_COLL_REDUCE_SCATTER", "the data of a rank", kReduceScatters},
    {"scan", "VERBATIM_COLL_SCAN", "the data of a rank", kScans},
    {"exscan", "VERBATIM_COLL_EXSCAN", "the data of a rank", kExscans},
};

}  // namespace

const CollectiveFacts& facts_of(Collective which) noexcept {
  return kFacts[static_cast<std::size_t>(which)];
}

const char* unmet(const KnownAlgorithm& algorithm, const Shape& shape) noexcept {
  if ((algorithm.wants & kCommutative) != 0 && !shape.is_commutative)
    return "wants an operation that commutes";
  if ((algorithm.wants & kAlikeSlices) != 0 && !shape.are_alike) return "wants slices of one size";
  if ((algorithm.wants & kPowerOfTwo) != 0 && (shape.ranks & (shape.ranks - 1)) != 0)
    return "wants a number of ranks that is a power of two";
  if ((algorithm.wants & kEvenRanks) != 0 && shape.ranks % 2 != 0)
    return "wants an even number of ranks";
  if ((algorithm.wants & kNodes) != 0 && !shape.has_nodes)
    return "wants several nodes, and several ranks on one of them";
  if ((algorithm.wants & kOrderOfNodes) != 0 && !shape.is_commutative && !shape.are_nodes_in_order)
    return "wants nodes of ranks that follow one another, or an operation that commutes";
  return nullptr;
}

const KnownAlgorithm* find_algorithm(Collective which, const char* name) noexcept {
  for (const KnownAlgorithm& each : facts_of(which).algorithms)
    if (std::string_view(each.name) == name) return &each;
  return nullptr;
}

}  // namespace vmpi
