// SPDX-License-Identifier: BSD-2-Clause
#include <cstdarg>
#include <cstdio>

#include "perf/cli/topo_views.hpp"
#include "runtime/topo/machine_read.hpp"

namespace verbatim::cli {
namespace {

[[gnu::format(printf, 2, 3)]] void add(std::string& text, const char* format, ...) {
  char line[512];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text += line;
}

std::string counted(std::size_t count, const char* what) {
  return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
}

std::string node_name(const topo::Machine& machine, std::uint32_t node) {
  return std::to_string(machine.nodes()[node].number);
}

void add_machine(std::string& text, const TopoFacts& facts) {
  const topo::Machine& machine = *facts.machine;
  add(text, "machine    %s: %s, %s, %s, %s, %s\n", facts.origin(),
      counted(machine.head().package_count, "package").c_str(),
      counted(machine.nodes().size(), "node").c_str(),
      counted(machine.groups().size(), "L3 cache").c_str(),
      counted(machine.cores().size(), "core").c_str(),
      counted(machine.pus().size(), "processor").c_str());
  for (std::uint32_t i = 0; i < machine.nodes().size(); ++i) {
    const topo::Node& node = machine.nodes()[i];
    add(text, "node %-5u %s%s, processors %s%s\n", node.number,
        bytes_text(node.memory_bytes).c_str(),
        node.kind == topo::NodeKind::kHighBandwidth ? " of high bandwidth" : "",
        ranges(cpus_near(machine, i)).c_str(),
        topo::node_is_allowed(machine, facts.limits, i) ? "" : "; not for this process");
    for (const topo::Group& group : machine.groups()) {
      if (group.node != i) continue;
      add(text, "  L3       %s, processors %s\n", bytes_text(group.cache_bytes).c_str(),
          ranges(cpus_of(machine, group.first_pu, group.pu_count)).c_str());
    }
  }
}

void add_distances(std::string& text, const TopoFacts& facts) {
  const topo::Machine& machine = *facts.machine;
  const std::size_t count = machine.nodes().size();
  if (count < 2) return;
  text += "distances ";
  for (const topo::Node& node : machine.nodes()) add(text, " %3u", node.number);
  text += machine.head().distances_told != 0 ? "\n" : "   (not told by the machine: guesses)\n";
  for (std::uint32_t from = 0; from < count; ++from) {
    add(text, "  %7u ", machine.nodes()[from].number);
    for (std::uint32_t to = 0; to < count; ++to) add(text, " %3u", machine.distance(from, to));
    text += '\n';
  }
}

/// Fast cores and slow ones, where they differ.
void add_kinds(std::string& text, const TopoFacts& facts) {
  std::vector<std::vector<std::uint32_t>> kinds;
  for (const topo::Core& core : facts.machine->cores()) {
    if (core.efficiency == topo::kNone || core.efficiency > 63) continue;
    if (kinds.size() <= core.efficiency) kinds.resize(core.efficiency + 1);
    for (const std::uint32_t cpu : cpus_of(*facts.machine, core.first_pu, core.pu_count))
      kinds[core.efficiency].push_back(cpu);
  }
  for (std::size_t kind = kinds.size(); kind-- > 0;)
    add(text, "%s processors %s: cores of kind %zu%s\n",
        kind + 1 == kinds.size() ? "kinds     " : "          ", ranges(kinds[kind]).c_str(), kind,
        kind + 1 == kinds.size() ? ", the fastest" : "");
}

void add_process(std::string& text, const TopoFacts& facts) {
  const std::string cores = " (" + counted(facts.allowed.cores, "core") + ")";
  const bool counts = facts.machine->is_this_host() || !facts.machine->known();
  add(text, "process    processors %s%s; nodes %s; memory %s%s\n",
      facts.limits.affinity_known ? ranges(facts.limits.affinity).c_str() : "unknown",
      facts.machine->is_this_host() ? cores.c_str() : "",
      facts.limits.nodes_known ? ranges(facts.limits.nodes).c_str() : "unknown",
      facts.limits.memory_bytes == topo::kUnlimited ? "without limit"
                                                    : bytes_text(facts.limits.memory_bytes).c_str(),
      counts ? "" : ": of this host, so left aside above and below");
  if (facts.ranks.count != topo::kNone) {
    add(text, "ranks      %u on this host, %s\n", facts.ranks.count,
        topo::cores_are_short(facts.ranks, facts.allowed.cores)
            ? "more than cores: waiting threads give way"
            : "a core or more for each");
  }
}

/// "node 1, then 0": where memory for that node comes from.
std::string memory_of(const TopoFacts& facts, std::uint32_t from) {
  std::string text;
  for (const std::uint32_t node : facts.memory_order(from))
    text += (text.empty() ? "node " : ", then ") + node_name(*facts.machine, node);
  return text.empty() ? "nowhere that is known" : text;
}

void add_placement(std::string& text, const TopoFacts& facts) {
  const topo::Machine& machine = *facts.machine;
  for (std::uint32_t from = 0; from < machine.nodes().size(); ++from) {
    if (machine.nodes()[from].kind != topo::NodeKind::kMain || machine.nodes()[from].cpu_count == 0)
      continue;
    add(text, "buffers    of a thread on node %s%s: ", node_name(machine, from).c_str(),
        from == facts.node ? " (as this one is)" : "");
    text += memory_of(facts, from) + '\n';
  }
  for (const TopoDevice& device : facts.devices) {
    if (device.node == topo::kNone) {
      add(text, "device     %s: as near to one node as to another\n", device.name.c_str());
    } else {
      add(text,
          "device     %s: on node %s; threads on processors %s; buffers: ", device.name.c_str(),
          node_name(machine, device.node).c_str(), ranges(cpus_near(machine, device.node)).c_str());
      text += memory_of(facts, device.node) + '\n';
    }
  }
}

}  // namespace

std::string topo_text(const TopoFacts& facts) {
  std::string text;
  if (facts.machine->known()) {
    add_machine(text, facts);
    add_kinds(text, facts);
    add_distances(text, facts);
  } else {
    text += "machine    unknown";
    text += topo::reader_version() == 0 ? ": built without hwloc\n" : "\n";
  }
  add_process(text, facts);
  add_placement(text, facts);
  return text;
}

}  // namespace verbatim::cli
