// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/coll/host_groups.hpp"

#include <cstdlib>
#include <new>

#include "mpi_shim/coll/select.hpp"

namespace vmpi {
namespace {

/// Of each rank the first one whose place is alike.
template <class IsAlike>
[[nodiscard]] bool set_by(Nodes& nodes, const HostPlace* places, int ranks,
                          IsAlike is_alike) noexcept {
  int numbers[HostTeam::kMostRanks] = {};
  for (int i = 0; i < ranks; ++i) {
    while (!is_alike(places[numbers[i]], places[i])) ++numbers[i];
  }
  return nodes.set(numbers, ranks);
}

[[nodiscard]] bool is_one_node(const HostPlace& one, const HostPlace& other) noexcept {
  return one.node == other.node;
}
[[nodiscard]] bool is_one_cache(const HostPlace& one, const HostPlace& other) noexcept {
  return one.node == other.node && one.cache == other.cache;
}

[[nodiscard]] HostLayout layout_of(const HostGroups& by, const HostPlace* places) noexcept {
  HostLayout layout;
  layout.ranks = by.groups.ranks();
  layout.groups = by.groups.count();
  layout.largest_group = by.groups.most();
  layout.nodes = by.nodes.count();
  layout.is_declared = true;
  for (int i = 0; i < layout.ranks; ++i)
    layout.is_declared = layout.is_declared && places[i].is_declared != 0;
  for (int node = 0; node < layout.nodes; ++node) {
    int groups = 0;
    for (int group = 0; group < layout.groups; ++group)
      groups += by.nodes.node_of(by.groups.leaders()[group]) == node ? 1 : 0;
    if (groups > layout.most_groups_of_node) layout.most_groups_of_node = groups;
  }
  return layout;
}

}  // namespace

bool HostGroups::can_be(int ranks) noexcept {
  return ranks >= kLeastRanksOfGroups || are_groups_declared();
}

std::uint32_t HostGroups::digest_of(const HostPlace* places, int ranks) noexcept {
  std::uint32_t hash = 0x811c9dc5u;  // FNV-1a, by words
  for (int i = 0; i < ranks; ++i)
    for (const std::uint32_t word : {places[i].node, places[i].cache, places[i].is_declared})
      hash = (hash ^ word) * 0x01000193u;
  return hash;
}

bool HostGroups::find(const HostPlace* places, int ranks, const Costs& costs,
                      HostGroups*& found) noexcept {
  found = nullptr;
  HostGroups by;
  if (!set_by(by.groups, places, ranks, is_one_cache) ||
      !set_by(by.nodes, places, ranks, is_one_node))
    return false;
  HostLayout layout = layout_of(by, places);
  layout.hear_by(costs);
  const HostLevels levels = levels_for(layout);
  if (levels == HostLevels::kFlat) return true;
  void* const place = std::malloc(sizeof(HostGroups));
  if (place == nullptr) return false;
  found = ::new (place) HostGroups();
  return set_by(found->groups, places, ranks, is_one_cache) &&
         set_by(found->nodes, places, ranks,
                levels == HostLevels::kCaches ? is_one_cache : is_one_node);
}

void HostGroups::drop(HostGroups* groups) noexcept {
  if (groups == nullptr) return;
  groups->~HostGroups();
  std::free(static_cast<void*>(groups));
}

}  // namespace vmpi
