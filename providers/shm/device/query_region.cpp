// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/device/query_region.hpp"

#include "providers/shm/memory/context.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/qp.hpp"

namespace verbatim::shm {
namespace {

/// A peer tries the kernel's copies for itself; what we found in our direction is the best guess at
/// what it found in its own.
vbt_tier tier_of(const Region& region, const Peer& peer) noexcept {
  if (peer.self) return VBT_TIER_MAPPED;
  if (region.arena == RegionRecord::kOwnerOnly) return VBT_TIER_SERVICE_THREAD;
  if (region.arena != 0) return VBT_TIER_MAPPED;
  switch (peer.cma.load(std::memory_order_acquire)) {
    case Cma::kWorks:
      return VBT_TIER_KERNEL_COPY;
    case Cma::kRefused:
      return VBT_TIER_SERVICE_THREAD;
    default:
      return VBT_TIER_UNKNOWN;
  }
}

}  // namespace

int query_mr_peers(verbatim::Mr& handle, vbt_mr_peer* peers, std::uint32_t room,
                   std::uint32_t& count) noexcept {
  const Region& region = static_cast<Mr&>(handle).shown;
  count = 0;
  LockGuard<Mutex> guard(live.mutex);
  for (std::uint32_t i = 0; i < live.watched_count && count < room; ++i) {
    const Qp& qp = *live.watched[i];
    const Peer* peer = qp.met.load(std::memory_order_acquire);
    if (peer == nullptr || qp.pd_number != region.pd ||
        !peer->alive.load(std::memory_order_acquire))
      continue;
    const vbt_mr_peer found{peer->pid, tier_of(region, *peer), 0};
    std::uint32_t known = 0;
    while (known < count && peers[known].pid != found.pid) ++known;
    if (known == count) peers[count++] = found;
  }
  return 0;
}

}  // namespace verbatim::shm
