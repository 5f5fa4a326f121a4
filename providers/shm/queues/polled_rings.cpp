// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/polled_rings.hpp"

#include <algorithm>

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/queues/arrived.hpp"
#include "providers/shm/queues/hot_ring.hpp"

namespace verbatim::shm {
namespace {

/// A ring is hot from its so many-eth look on that a doorbell asked for: a single message per QP,
/// as many connections bring at start, makes none hot.
constexpr std::uint32_t kHeatAfter = 4;
/// And at most, where that brought nothing.
constexpr std::uint32_t kMostReplaceAfter = 1u << 14;

/// Ends the hot time of rings that were dropped: a sender that has read the old word has its
/// message in the ring after the fence, one that reads later rings. Nobody pays for it per message.
void settle(Cq& cq, Qp* const* cooled, std::uint32_t count) noexcept {
  if (count == 0) return;
  Process::get().fence_everyone();
  for (std::uint32_t i = 0; i < count; ++i)
    if (has_message(*cooled[i])) cq.doorbells->ring(cooled[i]->own->cq_bit);
}

}  // namespace

void drop_hot(Cq& cq, std::uint32_t i) noexcept {
  const std::uint32_t last = cq.hot_count.load(std::memory_order_relaxed) - 1;
  cq.hot[i].qp->in.hot_index = Responder::kNotHot;
  cq.hot[i].qp->in.announced = 0;
  cq.hot[i].qp->own->attention.store(kDoorbell, std::memory_order_release);
  if (i != last) {
    cq.hot[i].take(cq.hot[last]);
    cq.hot[i].qp->in.hot_index = static_cast<std::uint8_t>(i);
  }
  cq.hot_count.store(last, std::memory_order_relaxed);
}

void cool_all(Cq& cq) noexcept {
  Qp* cooled[kHotRings];
  std::uint32_t count = 0;
  while (cq.hot_count.load(std::memory_order_relaxed) != 0) {
    cooled[count++] = cq.hot[0].qp;
    drop_hot(cq, 0);
  }
  settle(cq, cooled, count);
}

std::uint64_t cool_silent(Cq& cq) noexcept {
  Qp* cooled[kHotRings];
  std::uint32_t count = 0;
  std::uint32_t i = 0;
  std::uint64_t all = 0;
  while (i < cq.hot_count.load(std::memory_order_relaxed)) {
    HotRing& hot = cq.hot[i];
    const std::uint64_t brought = hot.qp->in.head.load(std::memory_order_relaxed);
    all += brought - hot.seen;
    if (hot.seen == brought && cq.hot_count.load(std::memory_order_relaxed) > 1) {
      cooled[count++] = hot.qp;
      drop_hot(cq, i);
    } else {
      hot.seen = brought;
      ++i;
    }
  }
  cq.contenders = 0;
  settle(cq, cooled, count);
  return all;
}

void heat(Cq& cq, Qp& qp) noexcept {
  if (cq.event_mode != 0) {
    --cq.event_mode;
    return;
  }
  if (qp.in.hot_index != Responder::kNotHot || qp.in.ring == nullptr) return;
  if (++qp.in.announced < kHeatAfter) return;
  // Who armed the CQ may go to sleep after this very poll, and a polled ring wakes nobody.
  if (cq.armed->load(std::memory_order_relaxed) != CqRecord::kIdle) return;
  if (cq.hot_count.load(std::memory_order_relaxed) == kHotRings) {
    if (++cq.contenders < cq.replace_after) return;
    // Where many take turns no four are worth the fence of all threads that a change costs.
    const std::uint32_t waited = cq.contenders;
    cq.replace_after = cool_silent(cq) >= waited
                           ? kReplaceAfter
                           : std::min(2 * cq.replace_after, kMostReplaceAfter);
    if (cq.hot_count.load(std::memory_order_relaxed) == kHotRings) return;
  }
  const std::uint32_t i = cq.hot_count.load(std::memory_order_relaxed);
  HotRing& hot = cq.hot[i];
  hot.qp = &qp;
  hot.is_shared.store(qp.srq != nullptr, std::memory_order_relaxed);
  hot.seen = qp.in.head.load(std::memory_order_relaxed);
  point_at_next(hot);
  qp.in.hot_index = static_cast<std::uint8_t>(i);
  cq.hot_count.store(i + 1, std::memory_order_release);
  qp.own->attention.store(kPolled, std::memory_order_release);
}

}  // namespace verbatim::shm
