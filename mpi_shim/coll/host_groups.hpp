// SPDX-License-Identifier: BSD-2-Clause
// Ranks of a team that share an L3 cache, and those that share a NUMA node: short collectives among
// them are done in levels within one round. All say their word in their own line; the first of each
// group hears those of its group, which lie in the cache that they share; leaders tell each other what
// they have heard, first within a NUMA node, then across; and what comes of it goes down the same way.
//
//   rank 0  1  2  3   4  5  6  7        hears at a time, of ranks in G groups of m:
//        \__\__\__|   \__\__\__|        m - 1 within a cache, G - 1 across, 1 within a cache
//         up: 0 <-------> 4             instead of m - 1 within a cache and (G - 1) m across
//         down: 0 -> 1 2 3, 4 -> 5 6 7
//
// What goes up is what each rank has put, not partial results: all that is computed is computed in the
// order of ranks, and is bit by bit what ungrouped ranks compute, wherever they run.
//
// Within a host only, and below plans: over nodes that a plan knows (nodes.hpp) leaders send messages.
#pragma once

#include <cstdint>

#include "mpi_shim/coll/host_team.hpp"
#include "mpi_shim/core/costs.hpp"
#include "mpi_shim/core/host_place.hpp"
#include "mpi_shim/core/nodes.hpp"

namespace vmpi {

struct HostGroups {
  Nodes groups;  ///< ranks by cache
  Nodes nodes;   ///< by NUMA node; the same again where leaders of all groups tell each other

  /// Whether so many ranks might be grouped, so that it is worth finding out where they run.
  [[nodiscard]] static bool can_be(int ranks) noexcept;
  /// What all ranks have to see alike.
  [[nodiscard]] static std::uint32_t digest_of(const HostPlace* places, int ranks) noexcept;
  /// Null: every rank hears every other. False: no memory. `places` are what others say.
  [[nodiscard]] static bool find(const HostPlace* places, int ranks, const Costs& costs,
                                 HostGroups*& found) noexcept;
  static void drop(HostGroups* groups) noexcept;
};

// REQUIRES: team.groups() is not null. Arguments as of what they are called by.

[[nodiscard]] int meet_by_groups(HostTeam& team, HostKind kind, std::uint64_t bytes) noexcept;
/// Of those who are not the root, who says its word as to ungrouped ones. `bytes` are up to a line's.
[[nodiscard]] int hear_root_by_groups(HostTeam& team, const Typed& data, std::uint64_t bytes,
                                      int root) noexcept;
/// Up to a line's bytes.
[[nodiscard]] int reduce_by_groups(const HostReduction& what, int root) noexcept;

}  // namespace vmpi
