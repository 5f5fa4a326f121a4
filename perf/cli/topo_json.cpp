// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/topo_views.hpp"
#include "perf/support/json.hpp"

namespace verbatim::cli {
namespace {

using perf::Json;

Json number(std::uint32_t value) { return value == topo::kNone ? Json() : Json(value); }

/// The kernel's number of a node, from its index.
Json node_number(const topo::Machine& machine, std::uint32_t node) {
  return node < machine.nodes().size() ? Json(machine.nodes()[node].number) : Json();
}

Json numbers(const topo::Machine& machine, const std::vector<std::uint32_t>& nodes) {
  Json all = Json::array();
  for (const std::uint32_t node : nodes) all.push_back(node_number(machine, node));
  return all;
}

Json set(const topo::NumberSet& numbers) {
  Json all = Json::array();
  for (std::uint32_t at = numbers.next(0); at < topo::NumberSet::kEnd; at = numbers.next(at + 1))
    all.push_back(at);
  return all;
}

Json machine_json(const TopoFacts& facts) {
  const topo::Machine& machine = *facts.machine;
  Json all;
  all["origin"] = facts.origin();
  all["packages"] = machine.head().package_count;
  all["distances_told"] = machine.head().distances_told != 0;
  all["nodes"] = Json::array();
  for (std::uint32_t i = 0; i < machine.nodes().size(); ++i) {
    const topo::Node& node = machine.nodes()[i];
    Json distances = Json::array();
    for (std::uint32_t to = 0; to < machine.nodes().size(); ++to)
      distances.push_back(machine.distance(i, to));
    all["nodes"].push_back(
        {{"number", node.number},
         {"package", number(node.package)},
         {"memory_bytes", node.memory_bytes},
         {"kind", node.kind == topo::NodeKind::kHighBandwidth ? "high bandwidth" : "main"},
         {"allowed", topo::node_is_allowed(machine, facts.limits, i)},
         {"processors", cpus_near(machine, i)},
         {"distances", distances},
         {"memory_order", numbers(machine, facts.memory_order(i))}});
  }
  all["l3_caches"] = Json::array();
  for (const topo::Group& group : machine.groups())
    all["l3_caches"].push_back({{"bytes", group.cache_bytes},
                                {"package", number(group.package)},
                                {"node", node_number(machine, group.node)},
                                {"processors", cpus_of(machine, group.first_pu, group.pu_count)}});
  all["cores"] = Json::array();
  for (const topo::Core& core : machine.cores())
    all["cores"].push_back({{"number", core.number},
                            {"package", number(core.package)},
                            {"l3_cache", number(core.group)},
                            {"node", node_number(machine, core.node)},
                            {"kind", number(core.efficiency)},
                            {"processors", cpus_of(machine, core.first_pu, core.pu_count)}});
  return all;
}

}  // namespace

std::string topo_json(const TopoFacts& facts) {
  Json all;
  all["machine"] = facts.machine->known() ? machine_json(facts) : Json();
  const topo::ProcessLimits& limits = facts.limits;
  all["process"] = {
      {"processors", limits.affinity_known ? set(limits.affinity) : Json()},
      {"cpuset", limits.cpus.count() != 0 ? set(limits.cpus) : Json()},
      {"nodes", limits.nodes_known ? set(limits.nodes) : Json()},
      {"cores", facts.allowed.cores},
      {"memory_limit_bytes",
       limits.memory_bytes == topo::kUnlimited ? Json() : Json(limits.memory_bytes)},
      {"thread",
       {{"processor", number(facts.cpu)}, {"node", node_number(*facts.machine, facts.node)}}},
      {"local_ranks", number(facts.ranks.count)},
      {"local_rank", number(facts.ranks.rank)}};
  all["devices"] = Json::array();
  for (const TopoDevice& device : facts.devices)
    all["devices"].push_back(
        {{"name", device.name}, {"node", node_number(*facts.machine, device.node)}});
  return all.text() + '\n';
}

}  // namespace verbatim::cli
