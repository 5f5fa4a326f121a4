// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/node_choice.hpp"

#include <algorithm>
#include <cerrno>

namespace verbatim {
namespace {

using topo::kNone;

struct Chooser {
  const topo::Machine& machine;
  const topo::ProcessLimits& limits;
  NodeChoice& choice;

  void take(std::uint32_t index) noexcept {
    choice.nodes[choice.count++] = machine.nodes()[index].number;
  }
  int unknown(const char* reason) noexcept {
    choice.fallbacks |= VBT_FALLBACK_UNKNOWN;
    choice.reason = reason;
    return 0;
  }

  /// The node itself, or the nearest that may be used.
  int take_nearest(std::uint32_t index) noexcept {
    if (topo::node_is_allowed(machine, limits, index)) {
      take(index);
      return 0;
    }
    std::uint32_t order[topo::kMaxNodes];
    const std::uint32_t count = machine.nodes_by_distance(index, order);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!topo::node_is_allowed(machine, limits, order[i])) continue;
      take(order[i]);
      choice.fallbacks |= VBT_FALLBACK_NODE;
      choice.reason = "this process may not use the nearest node (cpuset): the next one is taken";
      return 0;
    }
    return unknown("no node of the machine may be used (cpuset)");
  }

  int near_thread(std::uint32_t thread_node) noexcept {
    if (thread_node == kNone) return unknown("nobody knows on which node this thread runs");
    return take_nearest(thread_node);
  }

  int named(std::uint32_t number) noexcept {
    if (machine.known()) {
      const std::uint32_t index = machine.node_by_number(number);
      choice.reason = "there is no such node";
      if (index == kNone) return EINVAL;
      choice.reason = "this process may not use that node (cpuset)";
      if (!topo::node_is_allowed(machine, limits, index)) return EINVAL;
    } else {
      choice.reason = "there is no such node, or this process may not use it";
      if (number >= topo::kMaxNodes || (limits.nodes_known && !limits.nodes.has(number)))
        return EINVAL;
    }
    choice.reason = "";
    choice.nodes[choice.count++] = number;
    return 0;
  }

  int near_device(std::uint32_t number, std::uint32_t thread_node) noexcept {
    if (number == kNone) {
      const int error = near_thread(thread_node);
      choice.fallbacks |= VBT_FALLBACK_NODE;
      if (choice.reason[0] == '\0')
        choice.reason = "the device is on no node: memory near the calling thread is taken";
      return error;
    }
    if (!machine.known()) return named(number);
    const std::uint32_t index = machine.node_by_number(number);
    if (index == kNone) return unknown("the device's node is none of the machine's");
    return take_nearest(index);
  }

  /// Main memory only: high-bandwidth nodes are for who asks for them.
  int all(std::uint32_t from) noexcept {
    if (!machine.known()) {
      if (!limits.nodes_known) return unknown("nobody knows which nodes there are");
      for (std::uint32_t number = limits.nodes.next(0);
           number < topo::kMaxNodes && choice.count < topo::kMaxNodes;
           number = limits.nodes.next(number + 1)) {
        choice.nodes[choice.count++] = number;
      }
      return 0;
    }
    std::uint32_t order[topo::kMaxNodes];
    const std::uint32_t count = machine.nodes_by_distance(from == kNone ? 0 : from, order);
    for (std::uint32_t i = 0; i < count; ++i) {
      const topo::Node& node = machine.nodes()[order[i]];
      if (node.kind == topo::NodeKind::kMain && node.memory_bytes != 0 &&
          topo::node_is_allowed(machine, limits, order[i])) {
        take(order[i]);
      }
    }
    return choice.count != 0 ? 0 : unknown("no node of the machine may be used (cpuset)");
  }
};

}  // namespace

int choose_nodes(const topo::Machine& machine, const topo::ProcessLimits& limits,
                 const NodeWish& wish, NodeChoice& choice) noexcept {
  choice.count = 0;
  choice.fallbacks = 0;
  choice.reason = "";
  Chooser chooser{machine, limits, choice};
  switch (wish.where) {
    case VBT_WHERE_LOCAL:
      return chooser.near_thread(wish.thread_node);
    case VBT_WHERE_NODE:
      return chooser.named(wish.node);
    case VBT_WHERE_DEVICE:
      return chooser.near_device(wish.device_node, wish.thread_node);
    case VBT_WHERE_INTERLEAVED:
    case VBT_WHERE_SPREAD:
      return chooser.all(wish.thread_node);
    default:
      choice.reason = "there is no such place (enum vbt_where)";
      return EINVAL;
  }
}

}  // namespace verbatim
