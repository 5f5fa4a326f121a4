// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/topo/machine.hpp"

#include <sched.h>

namespace verbatim::topo {

std::uint32_t Machine::pu_of_cpu(std::uint32_t cpu) const noexcept {
  if (!known() || cpu >= head().cpu_end) return kNone;
  return table<std::uint32_t>(at_.pu_of_cpu, head().cpu_end)[cpu];
}

std::uint32_t Machine::node_of_cpu(std::uint32_t cpu) const noexcept {
  const std::uint32_t pu = pu_of_cpu(cpu);
  return pu == kNone ? kNone : pus()[pu].node;
}

std::uint32_t Machine::group_of_cpu(std::uint32_t cpu) const noexcept {
  const std::uint32_t pu = pu_of_cpu(cpu);
  return pu == kNone ? kNone : pus()[pu].group;
}

std::uint32_t Machine::node_of_this_thread() const noexcept {
  const int cpu = ::sched_getcpu();
  return cpu < 0 ? kNone : node_of_cpu(static_cast<std::uint32_t>(cpu));
}

std::uint32_t Machine::node_by_number(std::uint32_t number) const noexcept {
  const std::span<const Node> all = nodes();
  std::size_t low = 0;
  std::size_t high = all.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (all[middle].number < number) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < all.size() && all[low].number == number ? static_cast<std::uint32_t>(low) : kNone;
}

std::uint32_t Machine::distance(std::uint32_t from, std::uint32_t to) const noexcept {
  const std::size_t count = nodes().size();
  if (from >= count || to >= count) return kNone;
  return table<std::uint32_t>(at_.distances, count * count)[from * count + to];
}

std::span<const std::uint64_t> Machine::cpus_of_node(std::uint32_t node) const noexcept {
  if (node >= nodes().size()) return {};
  return table<std::uint64_t>(at_.cpus, nodes().size() * at_.cpu_words)
      .subspan(std::size_t{node} * at_.cpu_words, at_.cpu_words);
}

std::uint32_t Machine::nodes_by_distance(std::uint32_t from,
                                         std::span<std::uint32_t> order) const noexcept {
  const std::span<const Node> all = nodes();
  if (from >= all.size()) return 0;
  // True: `a` is taken before `b`.
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    if (all[a].kind != all[b].kind) return all[a].kind == NodeKind::kMain;
    if (a == from || b == from) return a == from;
    if (distance(from, a) != distance(from, b)) return distance(from, a) < distance(from, b);
    const bool a_near = all[a].package == all[from].package;
    const bool b_near = all[b].package == all[from].package;
    return a_near != b_near ? a_near : a < b;
  };
  std::uint32_t have = 0;
  for (std::uint32_t node = 0; node < all.size(); ++node) {
    if (have == order.size() && (have == 0 || !before(node, order[have - 1]))) continue;
    std::uint32_t at = have < order.size() ? have++ : have - 1;
    for (; at > 0 && before(node, order[at - 1]); --at) order[at] = order[at - 1];
    order[at] = node;
  }
  return have;
}

}  // namespace verbatim::topo
