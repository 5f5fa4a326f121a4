// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/coll/select.hpp"

#include <cstdio>
#include <string_view>
#include <utility>

#include "runtime/base/environment.hpp"
#include "runtime/base/log.hpp"

namespace vmpi {
namespace {

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;

// Algorithms. r = L + 2 o of LogGP, G the gap between bytes, c the time to combine a byte.

constexpr KnownAlgorithm kBarriers[] = {
    {"dissemination", barrier_dissemination, kNothing, "each rank has a processor", "log P r"},
    {"tree", barrier_tree, kNothing, "many ranks share a processor: fewest messages", "2 log P r"},
    {"leaders", barrier_leaders, kNodes, "several ranks on each of several nodes",
     "2 log S r' + log N r"},
};
constexpr KnownAlgorithm kBcasts[] = {
    {"binomial", bcast_binomial, kNothing, "short data, few ranks", "log P (r + n G)"},
    {"scatter_allgather", bcast_scatter_allgather, kNothing, "long data, many ranks",
     "(log P + P - 1) r + 2 n (P - 1) / P G"},
    {"chain", bcast_chain, kNothing, "very long data, in segments of s = 64 KiB",
     "(P - 1) r + (n / s - 1) g + (n / s + P - 2) s G"},
    {"leaders", bcast_leaders, kNodes, "short data, several ranks on each of several nodes",
     "log N (r + n G) + log S (r' + n G')"},
    {"node_chain", bcast_node_chain, kNodes,
     "very long data, several ranks on each of several nodes",
     "(N - 1) r + (S - 1) r' + (n / s + N + S - 3) s max(G, G')"},
};
constexpr KnownAlgorithm kGathers[] = {
    {"binomial", gather_binomial, kAlikeSlices, "short slices", "log P r + (P - 1) n G"},
    {"linear", gather_linear, kNothing, "long slices, slices that differ",
     "r + (P - 2) g + (P - 1) n G"},
};
constexpr KnownAlgorithm kScatters[] = {
    {"binomial", scatter_binomial, kAlikeSlices, "short slices", "log P r + (P - 1) n G"},
    {"linear", scatter_linear, kNothing, "long slices, slices that differ",
     "r + (P - 2) g + (P - 1) n G"},
};
constexpr KnownAlgorithm kAllgathers[] = {
    {"recursive_doubling", allgather_recursive_doubling, kPowerOfTwo, "short and medium slices",
     "log P r + N (P - 1) / P G"},
    {"bruck", allgather_bruck, kNothing, "short slices, any number of ranks",
     "log P r + N (P - 1) / P G, and a copy"},
    {"neighbour_exchange", allgather_neighbour_exchange, kEvenRanks, "long slices",
     "P / 2 r + N (P - 1) / P G"},
    {"ring", allgather_ring, kNothing, "long slices, any number of ranks",
     "(P - 1) r + N (P - 1) / P G"},
    {"leaders", allgather_leaders, kNodes, "short slices, several ranks on each of several nodes",
     "r' + N G + log N r + log S (r' + n G')"},
    {"owners", allgather_owners, kNodes, "long slices, several ranks on each of several nodes",
     "N r + (N - 1) n G + N (S - 1) n G'"},
};
constexpr KnownAlgorithm kAlltoalls[] = {
    {"bruck", alltoall_bruck, kAlikeSlices, "short slices, many ranks", "log P (r + n P / 2 G)"},
    {"spread", alltoall_spread, kNothing, "medium slices, slices that differ",
     "r + (P - 2) g + (P - 1) n G"},
    {"pairwise", alltoall_pairwise, kNothing, "long slices, many ranks", "(P - 1) (r + n G)"},
};
constexpr KnownAlgorithm kReduces[] = {
    {"binomial", reduce_binomial, kNothing, "short data", "log P (r + n G + n c)"},
    {"rabenseifner", reduce_rabenseifner, kNothing, "long data",
     "2 log P r + 2 n (P - 1) / P G + n (P - 1) / P c"},
    {"ring", reduce_ring, kCommutative, "very long data, P no power of two",
     "(P - 1) (r + g) + 2 n (P - 1) / P G + n (P - 1) / P c"},
    {"leaders", reduce_leaders, kNodes | kOrderOfNodes,
     "short data, several ranks on each of several nodes",
     "log S (r' + n (G' + c)) + log N (r + n (G + c))"},
    {"owners", reduce_owners, kNodes | kCommutative,
     "long data, several ranks on each of several nodes",
     "(log N + K + 1) r + n (1 + 1 / S) G + n (S - 1) / S G' + n c"},
};
constexpr KnownAlgorithm kAllreduces[] = {
    {"recursive_doubling", allreduce_recursive_doubling, kNothing, "short data",
     "log P (r + n G + n c)"},
    {"rabenseifner", allreduce_rabenseifner, kNothing, "long data, P a power of two",
     "2 log P r + 2 n (P - 1) / P G + n (P - 1) / P c"},
    {"ring", allreduce_ring, kCommutative, "very long data, any number of ranks",
     "2 (P - 1) r + 2 n (P - 1) / P G + n (P - 1) / P c"},
    {"reduce_bcast", allreduce_reduce_bcast, kNothing,
     "many ranks share a processor: fewest messages", "2 log P (r + n G) + log P n c"},
    {"leaders", allreduce_leaders, kNodes | kOrderOfNodes,
     "short data, several ranks on each of several nodes",
     "log S (2 r' + n (2 G' + c)) + log N (r + n (G + c))"},
    {"owners", allreduce_owners, kNodes | kCommutative,
     "long data, several ranks on each of several nodes",
     "(2 log N + K + 1) r + 2 n / S (N - 1) / N G + 2 n (S - 1) / S G' + n c"},
};
constexpr KnownAlgorithm kReduceScatters[] = {
    {"recursive_halving", reduce_scatter_recursive_halving, kCommutative, "short and medium slices",
     "log P r + N (P - 1) / P (G + c)"},
    {"pairwise", reduce_scatter_pairwise, kCommutative, "long slices",
     "(P - 1) r + N (P - 1) / P (G + c)"},
    {"binomial", reduce_scatter_binomial, kNothing, "operations that do not commute",
     "2 log P r + (log P + 1) N G + log P N c"},
};
constexpr KnownAlgorithm kScans[] = {
    {"recursive_doubling", scan_recursive_doubling, kNothing, "three ranks and more",
     "log P (r + n G + 2 n c)"},
    {"linear", scan_linear, kNothing, "two ranks, or many that share a processor",
     "(P - 1) (r + n G + n c)"},
};
constexpr KnownAlgorithm kExscans[] = {
    {"recursive_doubling", exscan_recursive_doubling, kNothing, "three ranks and more",
     "log P (r + n G + 2 n c)"},
    {"linear", exscan_linear, kNothing, "two ranks, or many that share a processor",
     "(P - 1) (r + n G + n c)"},
};

/// Of the table below: a name that is none does not compile.
consteval const KnownAlgorithm* named(std::span<const KnownAlgorithm> known,
                                      std::string_view name) noexcept {
  for (const KnownAlgorithm& each : known)
    if (name == each.name) return &each;
  __builtin_unreachable();
}

// The table: from ranks, to ranks, to bytes -> algorithm. A row whose algorithm cannot do the call is
// passed over; the last of each can do every call. Up to 4 ranks the sizes are where measured times cross
// (two ranks of a host on a processor each), above where LogGP's do (verbatim perf sim). Of several nodes
// those of ranks that share a node's link do (verbatim perf sim --ranks-per-node). An all-to-all has no
// composed one: what each rank gives each other is its own, and would go through a leader as well.

constexpr Choice kBarrierRows[] = {
    {3, kAnyRanks, kAnyBytes, named(kBarriers, "leaders"), "nodes meet by one message each"},
    {1, kAnyRanks, kAnyBytes, named(kBarriers, "dissemination"), "fewest rounds"},
};
constexpr Choice kBcastRows[] = {
    {3, 64, 128 * kKiB, named(kBcasts, "leaders"), "the data reach each node once"},
    {65, 256, 256 * kKiB, named(kBcasts, "leaders"), "the data reach each node once"},
    {257, kAnyRanks, kMiB, named(kBcasts, "leaders"), "the data reach each node once"},
    {3, kAnyRanks, kAnyBytes, named(kBcasts, "node_chain"), "long enough to fill the pipeline"},
    {1, 7, kAnyBytes, named(kBcasts, "binomial"), "three rounds at the most"},
    {8, 16, 64 * kKiB, named(kBcasts, "binomial"), "fewest rounds: latency counts"},
    {17, kAnyRanks, 128 * kKiB, named(kBcasts, "binomial"), "fewest rounds: latency counts"},
    {8, 16, 512 * kKiB, named(kBcasts, "scatter_allgather"),
     "each byte leaves the root about once"},
    {8, 16, kAnyBytes, named(kBcasts, "chain"), "long enough to fill the pipeline"},
    {17, 64, 8 * kMiB, named(kBcasts, "scatter_allgather"), "each byte leaves the root about once"},
    {17, 64, kAnyBytes, named(kBcasts, "chain"), "long enough to fill the pipeline"},
    {65, 256, 256 * kKiB, named(kBcasts, "binomial"), "fewer rounds than a ring"},
    {257, 1024, 2 * kMiB, named(kBcasts, "binomial"), "fewer rounds than a ring"},
    {1025, kAnyRanks, 16 * kMiB, named(kBcasts, "binomial"), "fewer rounds than a ring"},
    {65, kAnyRanks, kAnyBytes, named(kBcasts, "scatter_allgather"),
     "each byte leaves the root about once"},
};
constexpr Choice kGatherRows[] = {
    {1, 2, kAnyBytes, named(kGathers, "linear"), "one message"},
    {1, kAnyRanks, 4 * kKiB, named(kGathers, "binomial"), "fewest messages at the root"},
    {1, kAnyRanks, kAnyBytes, named(kGathers, "linear"), "no copy on the way"},
};
constexpr Choice kScatterRows[] = {
    {1, 2, kAnyBytes, named(kScatters, "linear"), "one message"},
    {1, kAnyRanks, 4 * kKiB, named(kScatters, "binomial"), "fewest messages of the root"},
    {1, kAnyRanks, kAnyBytes, named(kScatters, "linear"), "no copy on the way"},
};
constexpr Choice kAllgatherRows[] = {
    {17, 256, 32 * kKiB, named(kAllgathers, "leaders"), "nodes exchange their slices together"},
    {257, kAnyRanks, kMiB, named(kAllgathers, "leaders"), "nodes exchange their slices together"},
    {3, kAnyRanks, kAnyBytes, named(kAllgathers, "owners"),
     "they are alike, and slices reach each once", true},
    {3, 16, 32 * kKiB, named(kAllgathers, "leaders"), "nodes exchange their slices together"},
    {1, 64, 256 * kKiB, named(kAllgathers, "recursive_doubling"), "fewest rounds, no copy"},
    {1, 16, 64 * kKiB, named(kAllgathers, "bruck"), "fewest rounds where P is no power of two"},
    {17, 64, 512 * kKiB, named(kAllgathers, "bruck"), "fewest rounds where P is no power of two"},
    {65, kAnyRanks, 4 * kMiB, named(kAllgathers, "recursive_doubling"), "fewest rounds, no copy"},
    {65, kAnyRanks, 4 * kMiB, named(kAllgathers, "bruck"),
     "fewest rounds where P is no power of two"},
    {1, kAnyRanks, kAnyBytes, named(kAllgathers, "neighbour_exchange"),
     "neighbours only, half the rounds of a ring"},
    {1, kAnyRanks, kAnyBytes, named(kAllgathers, "ring"), "neighbours only"},
};
constexpr Choice kAlltoallRows[] = {
    {5, kAnyRanks, 512, named(kAlltoalls, "bruck"), "few messages: latency counts"},
    {1, 16, kAnyBytes, named(kAlltoalls, "spread"), "all under way together"},
    {17, kAnyRanks, 32 * kKiB, named(kAlltoalls, "spread"), "all under way together"},
    {17, kAnyRanks, kAnyBytes, named(kAlltoalls, "pairwise"), "nobody is sent to by several"},
};
constexpr Choice kReduceRows[] = {
    {3, kAnyRanks, 16 * kKiB, named(kReduces, "leaders"), "one message leaves each node"},
    {3, 256, kAnyBytes, named(kReduces, "owners"),
     "they are alike, and all ranks combine, each a part", true},
    {1, 2, kAnyBytes, named(kReduces, "binomial"), "one message"},
    {3, 7, 64 * kKiB, named(kReduces, "binomial"), "fewest rounds: latency counts"},
    {8, kAnyRanks, 16 * kKiB, named(kReduces, "binomial"), "fewest rounds: latency counts"},
    {3, 31, kAnyBytes, named(kReduces, "ring"), "all ranks combine, each a part"},
    {32, 127, 512 * kKiB, named(kReduces, "rabenseifner"),
     "all ranks combine, each a part, in few rounds"},
    {33, 63, kAnyBytes, named(kReduces, "ring"), "no power of two: no rank rests"},
    {65, 127, kAnyBytes, named(kReduces, "ring"), "no power of two: no rank rests"},
    {3, kAnyRanks, kAnyBytes, named(kReduces, "rabenseifner"),
     "all ranks combine, each a part, in few rounds"},
};
constexpr Choice kAllreduceRows[] = {
    {3, kAnyRanks, 8 * kKiB, named(kAllreduces, "leaders"),
     "nodes exchange one message in a round"},
    {3, kAnyRanks, kAnyBytes, named(kAllreduces, "owners"),
     "they are alike, and all ranks combine, each a part", true},
    {1, 2, 64 * kKiB, named(kAllreduces, "recursive_doubling"), "one round"},
    {3, kAnyRanks, 16 * kKiB, named(kAllreduces, "recursive_doubling"),
     "fewest rounds: latency counts"},
    {1, 3, kAnyBytes, named(kAllreduces, "ring"), "all ranks combine, and none rests"},
    {4, 31, 64 * kKiB, named(kAllreduces, "rabenseifner"),
     "all ranks combine, each a part, in few rounds"},
    {5, 7, kAnyBytes, named(kAllreduces, "ring"), "no power of two: no rank rests"},
    {9, 15, kAnyBytes, named(kAllreduces, "ring"), "no power of two: no rank rests"},
    {17, 31, kAnyBytes, named(kAllreduces, "ring"), "no power of two: no rank rests"},
    {4, 127, 512 * kKiB, named(kAllreduces, "rabenseifner"),
     "all ranks combine, each a part, in few rounds"},
    {33, 63, kAnyBytes, named(kAllreduces, "ring"), "no power of two: no rank rests"},
    {65, 127, kAnyBytes, named(kAllreduces, "ring"), "no power of two: no rank rests"},
    {1, kAnyRanks, kAnyBytes, named(kAllreduces, "rabenseifner"),
     "all ranks combine, each a part, in few rounds"},
};
constexpr Choice kReduceScatterRows[] = {
    {1, 2, kAnyBytes, named(kReduceScatters, "pairwise"), "one message each way"},
    {3, 32, 64 * kKiB, named(kReduceScatters, "recursive_halving"), "fewest rounds"},
    {33, 127, 512 * kKiB, named(kReduceScatters, "recursive_halving"), "fewest rounds"},
    {128, kAnyRanks, 16 * kMiB, named(kReduceScatters, "recursive_halving"), "fewest rounds"},
    {3, kAnyRanks, kAnyBytes, named(kReduceScatters, "pairwise"),
     "no rank gives more than its slices"},
    {1, kAnyRanks, kAnyBytes, named(kReduceScatters, "binomial"), "keeps the order"},
};
constexpr Choice kScanRows[] = {
    {1, 2, kAnyBytes, named(kScans, "linear"), "one message"},
    {3, kAnyRanks, kAnyBytes, named(kScans, "recursive_doubling"), "fewest rounds"},
};

constexpr Choice kExscanRows[] = {
    {1, 2, kAnyBytes, named(kExscans, "linear"), "one message"},
    {3, kAnyRanks, kAnyBytes, named(kExscans, "recursive_doubling"), "fewest rounds"},
};

constexpr CollectiveFacts kFacts[kCollectives] = {
    {"barrier", "VERBATIM_COLL_BARRIER", "none", kBarriers, kBarrierRows},
    {"bcast", "VERBATIM_COLL_BCAST", "the data", kBcasts, kBcastRows},
    {"gather", "VERBATIM_COLL_GATHER", "a slice", kGathers, kGatherRows},
    {"scatter", "VERBATIM_COLL_SCATTER", "a slice", kScatters, kScatterRows},
    {"allgather", "VERBATIM_COLL_ALLGATHER", "all slices together", kAllgathers, kAllgatherRows},
    {"alltoall", "VERBATIM_COLL_ALLTOALL", "a slice", kAlltoalls, kAlltoallRows},
    {"reduce", "VERBATIM_COLL_REDUCE", "the data of a rank", kReduces, kReduceRows},
    {"allreduce", "VERBATIM_COLL_ALLREDUCE", "the data of a rank", kAllreduces, kAllreduceRows},
    {"reduce_scatter", "VERBATIM_COLL_REDUCE_SCATTER", "the data of a rank", kReduceScatters,
     kReduceScatterRows},
    {"scan", "VERBATIM_COLL_SCAN", "the data of a rank", kScans, kScanRows},
    {"exscan", "VERBATIM_COLL_EXSCAN", "the data of a rank", kExscans, kExscanRows},
};

constinit const KnownAlgorithm* by_user[kCollectives] = {};

}  // namespace

const CollectiveFacts& facts_of(Collective which) noexcept {
  return kFacts[static_cast<std::size_t>(which)];
}

namespace {

/// Once for each call: in the place of its caller.
[[gnu::always_inline]] inline const Choice& find_row(Collective which,
                                                     const Shape& shape) noexcept {
  const CollectiveFacts& facts = kFacts[static_cast<std::size_t>(which)];
  for (const Choice& row : facts.choices)
    if (shape.bytes <= row.to_bytes && shape.ranks <= row.to_ranks &&
        shape.ranks >= row.from_ranks && (!row.is_of_alike_nodes || shape.are_nodes_alike) &&
        (row.algorithm->wants == kNothing || unmet(*row.algorithm, shape) == nullptr))
      return row;
  return facts.choices.back();
}

}  // namespace

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

const Choice& row_for(Collective which, const Shape& shape) noexcept {
  return find_row(which, shape);
}

const KnownAlgorithm* chosen_by_user(Collective which) noexcept {
  return by_user[static_cast<std::size_t>(which)];
}

namespace {

[[gnu::cold, gnu::noinline]] Algorithm* select_by_user(Collective which,
                                                       const KnownAlgorithm& wanted,
                                                       const Shape& shape) noexcept {
  static constinit bool said[kCollectives] = {};  // under the big lock
  const char* const why_not = unmet(wanted, shape);
  if (why_not == nullptr) return wanted.plan;
  const Choice& row = row_for(which, shape);
  if (!std::exchange(said[static_cast<std::size_t>(which)], true))
    verbatim::log_info("%s is %s, which %s: %s does this call of %d ranks",
                       facts_of(which).variable, wanted.name, why_not, row.algorithm->name,
                       shape.ranks);
  return row.algorithm->plan;
}

}  // namespace

Algorithm* select(Collective which, const Shape& shape) noexcept {
  const KnownAlgorithm* const wanted = by_user[static_cast<std::size_t>(which)];
  if (wanted != nullptr) [[unlikely]]
    return select_by_user(which, *wanted, shape);
  return find_row(which, shape).algorithm->plan;
}

/// By how many lines a rank hears one after another from caches beyond its own, which take some times as long
/// as those within (100 ns and 30 on usual machines): flat all ranks of other groups, else leaders alone, and
/// one more within for the way down.
HostLevels levels_for(const HostLayout& layout) noexcept {
  if (layout.groups < 2 || layout.groups == layout.ranks) return HostLevels::kFlat;
  const int beyond = layout.ranks - layout.largest_group;
  if (!layout.is_declared && beyond <= layout.groups) return HostLevels::kFlat;
  const bool are_nodes = layout.nodes > 1 && layout.nodes < layout.groups;
  const bool nodes_pay = layout.groups > layout.most_groups_of_node + layout.nodes;
  return are_nodes && (layout.is_declared || nodes_pay) ? HostLevels::kCachesAndNodes
                                                        : HostLevels::kCaches;
}

namespace {

constexpr HostWay kHostWays[] = {
    {"lines", kBytesOfLine, "flag and data in one line, and all hear all", "(P - 1) h"},
    {"lines by groups", kBytesOfLine,
     "ranks are bound to several caches: leaders hear theirs, then each other",
     "(m - 1) h + (G - 1) h' + h"},
    {"rooms", kBytesThroughRooms,
     "piece by piece, each put once and read by all (of up to 4 ranks any length)",
     "n G' to put, P n G' to read"},
};
enum : std::uint8_t { kLines, kLinesByGroups, kRooms };

[[nodiscard]] bool goes_by_host(Collective which) noexcept {
  return which == Collective::kBarrier || which == Collective::kBcast ||
         which == Collective::kReduce || which == Collective::kAllreduce;
}

}  // namespace

std::span<const HostWay> host_ways_of(Collective which) noexcept {
  if (!goes_by_host(which)) return {};
  const std::span<const HostWay> all = kHostWays;
  return which == Collective::kBarrier ? all.first(kRooms) : all;
}

const HostWay* host_way_for(Collective which, std::int64_t bytes,
                            const HostLayout& layout) noexcept {
  if (!goes_by_host(which) || layout.ranks < 2 || layout.ranks > kMostRanksOfHost) return nullptr;
  if (bytes <= kBytesOfLine)
    return &kHostWays[levels_for(layout) == HostLevels::kFlat ? kLines : kLinesByGroups];
  return bytes <= kBytesThroughRooms || layout.ranks <= kMostRanksOfLongRooms ? &kHostWays[kRooms]
                                                                              : nullptr;
}

const char* read_algorithm_choices() noexcept {
  static constinit char wrong[320];
  for (int i = 0; i < kCollectives; ++i) {
    const auto which = static_cast<Collective>(i);
    const CollectiveFacts& facts = facts_of(which);
    constexpr std::size_t kLongest = 4095;
    const char* const name = verbatim::environment_text(facts.variable, kLongest);
    by_user[i] = name != nullptr ? find_algorithm(which, name) : nullptr;
    if (name == nullptr || by_user[i] != nullptr) continue;
    int length = std::snprintf(wrong, sizeof(wrong),
                               "%s is \"%.60s\", and the algorithms of %s are:", facts.variable,
                               name, facts.name);
    for (const KnownAlgorithm& each : facts.algorithms)
      length += std::snprintf(wrong + length, sizeof(wrong) - static_cast<std::size_t>(length),
                              "%s %s", &each == facts.algorithms.data() ? "" : ",", each.name);
    return wrong;
  }
  return nullptr;
}

}  // namespace vmpi
