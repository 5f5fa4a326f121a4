// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/topo_facts.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdio>

#include "perf/cli/device_list.hpp"
#include "runtime/topo/device_node.hpp"

namespace verbatim::cli {

std::vector<std::uint32_t> TopoFacts::memory_order(std::uint32_t from) const {
  std::vector<std::uint32_t> order(machine->nodes().size());
  order.resize(machine->nodes_by_distance(from, order));
  std::erase_if(order, [&](std::uint32_t each) {
    // Memory that only those get who ask for it, and memory that is not there.
    return !topo::node_is_allowed(*machine, limits, each) ||
           machine->nodes()[each].memory_bytes == 0 ||
           machine->nodes()[each].kind != topo::NodeKind::kMain;
  });
  return order;
}

const char* TopoFacts::origin() const {
  if (!machine->known()) return "unknown";
  switch (machine->head().origin) {
    case topo::Origin::kThisHost:
      return "this host";
    case topo::Origin::kSynthetic:
      return "HWLOC_SYNTHETIC";
    case topo::Origin::kXml:
      return "HWLOC_XMLFILE";
  }
  return "unknown";
}

void gather(TopoFacts& facts) {
  facts.machine = &topo::host_machine();
  topo::read_process_limits(facts.limits);
  facts.allowed = topo::allowed_processors(*facts.machine, facts.limits);
  facts.ranks = topo::local_ranks();
  const int cpu = sched_getcpu();
  facts.cpu = cpu < 0 ? topo::kNone : static_cast<std::uint32_t>(cpu);
  facts.node = facts.machine->node_of_cpu(facts.cpu);
  const DeviceList list;
  for (int i = 0; list && i < list.size(); ++i) {
    const char* const name = ibv_get_device_name(list.at(i));
    facts.devices.push_back(
        {name, facts.machine->node_by_number(topo::node_number_of_device(name))});
  }
}

std::string ranges(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(numbers[i]);
    if (last != i) text += '-' + std::to_string(numbers[last]);
    i = last + 1;
  }
  return text.empty() ? "none" : text;
}

std::string ranges(const topo::NumberSet& numbers) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t number = numbers.next(0); number < topo::NumberSet::kEnd;
       number = numbers.next(number + 1))
    all.push_back(number);
  return ranges(all);
}

std::string bytes_text(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  char text[32];
  // One digit behind the point, where it says something.
  const bool whole = value >= 100 || value - static_cast<double>(static_cast<long>(value)) < 0.05;
  std::snprintf(text, sizeof text, whole ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

std::vector<std::uint32_t> cpus_of(const topo::Machine& machine, std::uint32_t first_pu,
                                   std::uint32_t pu_count) {
  std::vector<std::uint32_t> cpus;
  for (const topo::Pu& pu : machine.pus().subspan(first_pu, pu_count)) cpus.push_back(pu.cpu);
  std::sort(cpus.begin(), cpus.end());
  return cpus;
}

std::vector<std::uint32_t> cpus_near(const topo::Machine& machine, std::uint32_t node) {
  std::vector<std::uint32_t> cpus;
  const std::span<const std::uint64_t> words = machine.cpus_of_node(node);
  for (std::uint32_t cpu = 0; cpu < words.size() * 64; ++cpu) {
    if ((words[cpu / 64] >> (cpu % 64) & 1) != 0) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace verbatim::cli
