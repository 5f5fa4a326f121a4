// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/verbs/placement.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstring>

#include "runtime/base/log.hpp"
#include "runtime/base/proc_text.hpp"
#include "runtime/memory/memory_file.hpp"
#include "runtime/memory/page_census.hpp"

namespace verbatim {
namespace {

constexpr std::uint64_t kPagesTold = 16384;
constexpr std::uint64_t kPagesJudged = 256;
constexpr std::uint32_t kJudgements = 64;

/// Where the calling thread runs.
std::uint32_t local_node() noexcept {
  unsigned cpu = 0;
  unsigned node = 0;
  return ::syscall(SYS_getcpu, &cpu, &node, nullptr) == 0 ? node : VBT_NODE_UNKNOWN;
}

/// "0", or "0-1", "0,2".
bool has_several_nodes() noexcept {
  char online[256];
  return read_proc_text("/sys/devices/system/node/online", online, sizeof online) &&
         std::strpbrk(online, ",-") != nullptr;
}

/// How many looks are left; -1: nobody has asked yet whether there is anything to see.
constinit std::atomic<std::int32_t> looks{-1};

bool may_look() noexcept {
  std::int32_t left = looks.load(std::memory_order_relaxed);
  if (left == 0) return false;
  if (left < 0) {
    const bool worth = log_enabled(LogLevel::kWarn) && has_several_nodes();
    std::int32_t unasked = -1;
    (void)looks.compare_exchange_strong(unasked, worth ? std::int32_t{kJudgements} : 0,
                                        std::memory_order_relaxed);
    left = looks.load(std::memory_order_relaxed);
  }
  while (left > 0) {
    if (looks.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

}  // namespace

void report_placement(const Mr& mr, vbt_mr_attr& out) noexcept {
  out.node_count = 0;
  out.placement = VBT_PLACEMENT_UNKNOWN;
  out.local_node = local_node();
  out.pinned_bytes = mr.pinned;
  PageCensus census;
  // Memory of a device has no address here; "all of the address space" has no end.
  if (mr.device_memory == nullptr && mr.plain.addr != nullptr && mr.plain.length != SIZE_MAX) {
    census.take(mr.plain.addr, mr.plain.length, kPagesTold);
  }
  out.page_unit = page_bytes();
  out.page_count = census.pages();
  if (!census.known()) return;
  out.placement = VBT_PLACEMENT_KNOWN;
  out.pages_looked_at = census.looked_at();
  out.pages_present = census.present();
  out.pages_remote =
      out.local_node == VBT_NODE_UNKNOWN ? 0 : census.present() - census.on_node(out.local_node);
  for (std::uint32_t node = 0; node < PageCensus::kNodes && out.node_count < out.node_room;
       ++node) {
    if (census.on_node(node) == 0) continue;
    out.nodes[out.node_count++] = {node, 0, census.on_node(node)};
  }
  const MappingSizes sizes = read_mapping_sizes(mr.plain.addr, mr.plain.length);
  out.least_page_size = sizes.least_page;
  out.most_page_size = sizes.most_page;
  out.huge_bytes = sizes.huge_bytes;
}

void warn_of_remote_buffer(const char* done, const void* address, std::uint64_t length) noexcept {
  if (!may_look()) return;
  const std::uint32_t here = local_node();
  if (here == VBT_NODE_UNKNOWN) return;
  PageCensus census;
  census.take(address, length, kPagesJudged);
  const std::uint64_t remote = census.present() - census.on_node(here);
  if (remote * 2 <= census.present()) return;
  looks.store(0, std::memory_order_relaxed);
  static constinit LogOnce once;
  if (!once.first()) return;
  log_warn(
      "a buffer of %" PRIu64
      " KiB is %s by a thread on NUMA node %u, and most of it lies on node %u (%" PRIu64
      " of the %" PRIu64
      " pages looked at are remote): that can cost half of the speed; run the thread there "
      "('numactl --cpunodebind=%u'), or allocate or first touch the buffer on the thread that uses "
      "it; vbt_query_mr tells of each region, this is said once",
      length >> 10, done, here, census.fullest(), remote, census.present(), census.fullest());
}

}  // namespace verbatim
