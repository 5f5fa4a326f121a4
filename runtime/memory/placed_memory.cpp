// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/placed_memory.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runtime/base/log.hpp"
#include "runtime/memory/arena.hpp"
#include "runtime/memory/ledger.hpp"
#include "runtime/memory/locked_memory.hpp"
#include "runtime/memory/memory_file.hpp"
#include "runtime/memory/node_choice.hpp"
#include "runtime/memory/placed_release.hpp"
#include "runtime/memory/private_pages.hpp"
#include "runtime/topo/device_node.hpp"
#include "runtime/topo/host.hpp"

static_assert(VBT_NODE_UNKNOWN == verbatim::kNoNode && VBT_NODE_SEVERAL == verbatim::kSeveralNodes);
static_assert(VBT_NODE_UNKNOWN == verbatim::topo::kNone);
static_assert(verbatim::kMostParts == verbatim::topo::kMaxNodes);

namespace verbatim {
namespace {

constexpr std::uint64_t kLargest = std::uint64_t{1} << 46;
constexpr unsigned kKnownFlags =
    VBT_ALLOC_SHARED | VBT_ALLOC_LOCKED | VBT_ALLOC_LATER | VBT_ALLOC_EXACT;

const char* wrong_with(const vbt_alloc_attr& attr) noexcept {
  if (attr.size == 0) return "0 bytes";
  if ((attr.flags & ~kKnownFlags) != 0) return "unknown flags";
  if (attr.alignment != 0 && (!std::has_single_bit(attr.alignment) || attr.alignment > kGiantPage))
    return "an alignment that is no power of two up to 1 GiB";
  if (attr.page_size != 0 && attr.page_size != page_bytes() && attr.page_size != kHugePage &&
      attr.page_size != kGiantPage)
    return "pages that are neither the system's nor of 2 MiB or 1 GiB";
  if ((attr.flags & VBT_ALLOC_LATER) != 0 && (attr.flags & VBT_ALLOC_LOCKED) != 0)
    return "locked memory cannot be touched later";
  if ((attr.flags & VBT_ALLOC_LATER) != 0 && (attr.flags & VBT_ALLOC_SHARED) != 0)
    return "shared memory cannot be touched later";
  if (attr.where == VBT_WHERE_DEVICE && attr.device == nullptr) return "no device to be near to";
  return nullptr;
}

struct Block {
  PlacedBlock entry;
  std::uint64_t page = 0;
  int placed = 0;
};

void fall_back(vbt_alloc_facts& facts, unsigned kind, const char* reason) noexcept {
  facts.fallbacks |= kind;
  const std::size_t used = std::strlen(facts.reason);
  std::snprintf(facts.reason + used, sizeof facts.reason - used, "%s%s", used == 0 ? "" : "; ",
                reason);
}

int map_shared(const vbt_alloc_attr& attr, const PagePlan& plan, bool local, Block& block,
               vbt_alloc_facts& facts) noexcept {
  const std::uint64_t page = page_bytes();
  int error = 0;
  void* memory = nullptr;
  // Memory that this thread backs is local to it without a policy, so it may share an arena.
  if (local && attr.alignment <= page && attr.page_size == 0) {
    memory = alloc_shared(attr.size, error);
  } else {
    memory = alloc_shared_placed(attr.size, attr.alignment != 0 ? attr.alignment : 1, plan,
                                 block.placed, error);
  }
  if (memory == nullptr) return error;
  block.entry.base = static_cast<unsigned char*>(memory);
  block.entry.bytes = (attr.size + page - 1) / page * page;
  block.entry.shared = true;
  block.page = page;
  if (attr.page_size > page)
    fall_back(facts, VBT_FALLBACK_PAGES, "peers map no reserved huge pages (only advised ones)");
  return 0;
}

int map_private(const vbt_alloc_attr& attr, const PagePlan& plan, Block& block,
                vbt_alloc_facts& facts) noexcept {
  PrivatePages pages;
  const int error = map_private_pages({.bytes = attr.size,
                                       .alignment = attr.alignment != 0 ? attr.alignment : 1,
                                       .page = attr.page_size,
                                       .plan = plan,
                                       .touch = (attr.flags & VBT_ALLOC_LATER) == 0},
                                      pages);
  if (error != 0) return error;
  block.entry.base = pages.base;
  block.entry.bytes = pages.bytes;
  block.page = pages.page;
  block.placed = pages.placed;
  if (pages.smaller != nullptr) fall_back(facts, VBT_FALLBACK_PAGES, pages.smaller);
  return 0;
}

/// Where the pages are, against what was chosen.
void tell_nodes(const vbt_alloc_attr& attr, const NodeChoice& choice, const Block& block,
                vbt_alloc_facts& facts) noexcept {
  const std::span<const std::uint32_t> chosen(choice.nodes, choice.count);
  if (block.placed != 0)
    fall_back(facts, VBT_FALLBACK_UNKNOWN, "the kernel does not let memory be placed (mbind)");
  if ((attr.flags & VBT_ALLOC_LATER) != 0) {
    facts.node = block.placed != 0 || choice.count == 0 ? VBT_NODE_UNKNOWN
                 : choice.count == 1                    ? choice.nodes[0]
                                                        : VBT_NODE_SEVERAL;
    return;
  }
  const PagesSeen seen = look_at_pages(block.entry.base, attr.size, chosen);
  facts.node = seen.node;
  if (seen.looked_at == 0) {
    fall_back(facts, VBT_FALLBACK_UNKNOWN, "the kernel does not tell where pages are (move_pages)");
  } else if (seen.elsewhere != 0 && choice.count != 0) {
    fall_back(facts, VBT_FALLBACK_NODE, "the node had no room for all of it");
  }
}

PageOrder order_of(std::uint32_t where) noexcept {
  return where == VBT_WHERE_INTERLEAVED ? PageOrder::kInterleaved
         : where == VBT_WHERE_SPREAD    ? PageOrder::kParts
                                        : PageOrder::kPreferred;
}

int refuse(int error, const char* reason) noexcept {
  log_error("vbt_alloc: %s", reason);
  return error;
}

int alloc_block(const vbt_alloc_attr& attr, const char* device, vbt_alloc_facts& facts,
                Block& block, SpreadParts* parts) noexcept {
  if (const char* const wrong = wrong_with(attr)) return refuse(EINVAL, wrong);
  if (attr.size > kLargest) {
    log_error("vbt_alloc: %zu bytes are more than an address space holds", attr.size);
    return ENOMEM;
  }
  const topo::Machine& machine = topo::host_machine();
  topo::ProcessLimits limits;
  topo::read_process_limits(limits);
  NodeChoice choice;
  const NodeWish wish{
      .where = attr.where,
      .node = attr.node,
      .device_node = device != nullptr ? topo::node_number_of_device(device) : topo::kNone,
      .thread_node = machine.node_of_this_thread()};
  if (const int error = choose_nodes(machine, limits, wish, choice)) {
    log_error("vbt_alloc: node %u: %s", attr.node, choice.reason);
    return error;
  }
  if (choice.fallbacks != 0) fall_back(facts, choice.fallbacks, choice.reason);
  const bool local = attr.where == VBT_WHERE_LOCAL && (choice.fallbacks & VBT_FALLBACK_NODE) == 0;
  if (machine.known() && !machine.is_this_host()) {
    choice.count = 0;
    fall_back(facts, VBT_FALLBACK_UNKNOWN,
              "the machine is made up: memory is where it happens to be");
  }
  const PagePlan plan{.order = order_of(attr.where),
                      .nodes = {choice.nodes, choice.count},
                      .granule = page_bytes()};
  const bool shared = (attr.flags & VBT_ALLOC_SHARED) != 0;
  if (const int error = shared ? map_shared(attr, plan, local, block, facts)
                               : map_private(attr, plan, block, facts))
    return error;
  const auto give_up = [&](int error) {
    if (release_pages(block.entry) != 0)
      log_warn("vbt_alloc: memory that is not used stays mapped");
    return error;
  };
  if (block.placed == EINVAL && attr.where == VBT_WHERE_NODE) {
    log_error("vbt_alloc: node %u: the kernel has no such node", attr.node);
    return give_up(EINVAL);
  }
  tell_nodes(attr, choice, block, facts);
  if (parts != nullptr && plan.order == PageOrder::kParts && block.placed == 0) {
    parts->bytes = block.entry.bytes;
    parts->granule = block.page;
    parts->count = choice.count;
    std::copy_n(choice.nodes, choice.count, parts->nodes);
  }
  if ((attr.flags & VBT_ALLOC_EXACT) != 0 && facts.fallbacks != 0)
    return give_up(refuse(ENOMEM, facts.reason));
  if ((attr.flags & VBT_ALLOC_LOCKED) != 0) {
    const int error = lock_memory(block.entry.base, block.entry.bytes, "vbt_alloc");
    if (error != 0) return give_up(error);
    block.entry.locked = true;
  }
  const int error = ledger_add(block.entry);
  return error == 0 ? 0 : give_up(refuse(error, "no memory to remember a block"));
}

}  // namespace

void* alloc_placed(const vbt_alloc_attr& attr, const char* device, vbt_alloc_facts& facts,
                   int& error, SpreadParts* parts) noexcept {
  facts = {};
  Block block;
  error = alloc_block(attr, device, facts, block, parts);
  if (error != 0) return nullptr;
  facts.size = block.entry.bytes;
  facts.page_size = block.page;
  facts.locked = block.entry.locked;
  facts.shared = block.entry.shared;
  return block.entry.base;
}

}  // namespace verbatim
