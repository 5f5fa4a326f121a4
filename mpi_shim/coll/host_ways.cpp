// SPDX-License-Identifier: BSD-2-Clause
// What ranks of one host do by mapped memory, and when it is better than messages.
#include "mpi_shim/coll/crossovers.hpp"

namespace vmpi {

void HostLayout::hear_by(const Costs& costs) noexcept {
  near_ns = costs.ns(CostOf::kNearLatency);
  far_ns = costs.ns(CostOf::kFarLatency);
  // They are alike where rank 0's host has one cache, which says nothing of others.
  constexpr double kUsually = 2.5;
  if (far_ns <= near_ns) far_ns = kUsually * near_ns;
}

/// By how many lines a rank hears one after another, of which those from caches beyond its own take longer:
/// flat all ranks of other groups, else leaders alone, and one more within for the way down.
HostLevels levels_for(const HostLayout& layout) noexcept {
  if (layout.groups < 2 || layout.groups == layout.ranks) return HostLevels::kFlat;
  const int beyond = layout.ranks - layout.largest_group;
  // A leader that waits, and what it says then, are one line more from beyond.
  const double flat = beyond * layout.far_ns;
  const double by_leaders = layout.groups * layout.far_ns + layout.near_ns;
  if (!layout.is_declared && flat <= by_leaders) return HostLevels::kFlat;
  const bool are_nodes = layout.nodes > 1 && layout.nodes < layout.groups;
  const bool nodes_pay = layout.groups > layout.most_groups_of_node + layout.nodes;
  return are_nodes && (layout.is_declared || nodes_pay) ? HostLevels::kCachesAndNodes
                                                        : HostLevels::kCaches;
}

namespace {

/// Messages have to be clearly faster: what they do beside is more than the formulas tell.
constexpr double kClearly = 0.7;

constexpr HostWay kHostWays[] = {
    {"lines", kBytesOfLine, "flag and data in one line, and all hear all", "(P - 1) h"},
    {"lines by groups", kBytesOfLine,
     "ranks are bound to several caches: leaders hear theirs, then each other",
     "(m - 1) h + (G - 1) h' + h"},
    {"rooms", kBytesThroughRooms,
     "piece by piece, each put once and read by all (of up to 4 ranks any length)",
     "n max(p, f) of a bcast, n (p + (P - 1) (f + c)) of a reduction (p: host.put, f: "
     "host.fetch)"},
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

/// In ns, of long data: pieces are read while the next ones are put, and each rank reads what all others put.
double rooms_ns(Collective which, const Shape& shape) noexcept {
  const Costs& costs = shape.costs != nullptr ? *shape.costs : built_in_costs();
  const double put = costs.ns(CostOf::kPut);
  const double fetch = costs.ns(CostOf::kFetch);
  const double others = shape.ranks - 1;
  const auto bytes = static_cast<double>(shape.bytes);
  switch (which) {
    case Collective::kBcast:
      return bytes * (put > fetch ? put : fetch);
    case Collective::kAllgather:
      return bytes / shape.ranks * (put + others * fetch);
    case Collective::kAlltoall:
      return bytes * others * (put + fetch);
    default:
      return bytes * (put + others * (fetch + costs.ns(CostOf::kCombine)));
  }
}

bool are_rooms_faster(Collective which, const Shape& shape) noexcept {
  return model_ns(choose(which, shape), shape) >= kClearly * rooms_ns(which, shape);
}

const HostWay* host_way_for(Collective which, std::int64_t bytes, const HostLayout& layout,
                            const Costs& costs) noexcept {
  if (!goes_by_host(which) || layout.ranks < 2 || layout.ranks > kMostRanksOfHost) return nullptr;
  if (bytes <= kBytesOfLine)
    return &kHostWays[levels_for(layout) == HostLevels::kFlat ? kLines : kLinesByGroups];
  if (bytes > kBytesThroughRooms && layout.ranks > kMostRanksOfLongRooms) return nullptr;
  const Shape shape = {.ranks = layout.ranks, .bytes = bytes, .costs = &costs};
  return bytes < kLeastLong || are_rooms_faster(which, shape) ? &kHostWays[kRooms] : nullptr;
}

}  // namespace vmpi
