// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/service_hooks.hpp"

#include "providers/shm/live.hpp"
#include "providers/shm/poll_fast.hpp"
#include "providers/shm/receive.hpp"
#include "providers/shm/send_queue.hpp"
#include "providers/shm/service_requests.hpp"

namespace verbatim::shm {
namespace {

/// One sweep looks at so many QPs, so that its cost does not grow with their number.
constexpr std::uint32_t kSweepQps = 512;
std::uint32_t sweep_from = 0;  // service thread only

void wake_cq(std::uint32_t number) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  Cq* cq = number < kMaxCqs ? live.cqs[number] : nullptr;
  if (cq == nullptr) return;
  LockGuard<SpinLock> lock(cq->lock);
  fire_locked(*cq, true);
}

/// Moves waiting sends on. True when some are left.
bool progress_all() noexcept {
  bool waiting = false;
  for (std::uint32_t i = 0; i < live.cq_end; ++i) {
    Cq* cq = live.cqs[i];
    if (cq == nullptr || cq->pending_count.load(std::memory_order_acquire) == 0) continue;
    progress_pending(*cq);
    waiting |= cq->pending_count.load(std::memory_order_acquire) != 0;
  }
  return waiting;
}

void tick() noexcept {
  LockGuard<Mutex> guard(live.mutex);
  if (progress_all()) return;
  Node::get().want_tick(false);
  // Somebody may have begun to wait between the look and the word.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (std::uint32_t i = 0; i < live.cq_end; ++i)
    if (live.cqs[i] != nullptr && live.cqs[i]->pending_count.load(std::memory_order_seq_cst) != 0)
      Node::get().want_tick(true);
}

/// Repairs hints that a faulty or dying peer lost: a message whose bit is not set gets it set. And
/// lets rings that have gone silent wait for doorbells, so that a poll does not look at them for
/// ever.
void sweep() noexcept {
  retire_parked();
  LockGuard<Mutex> guard(live.mutex);
  const std::uint32_t end = Node::get().segment().head().qp_capacity;
  std::uint32_t looked = 0;
  Qp* qp = live.first_qp;
  for (std::uint32_t i = 0; i < sweep_from && qp != nullptr; ++i) qp = qp->next_live;
  if (qp == nullptr) {
    sweep_from = 0;
    qp = live.first_qp;
  }
  for (; qp != nullptr && looked < kSweepQps && looked < end; qp = qp->next_live, ++looked) {
    if (qp->own->accepts.load(std::memory_order_relaxed) == 0) continue;
    Cq& cq = *qp->recv_cq;
    LockGuard<SpinLock> lock(cq.lock);
    if (qp->hot_index != Qp::kNotHot || !has_message(*qp)) continue;
    cq.doorbells->ring(qp->own->cq_bit);
    fire_locked(cq, true);
  }
  sweep_from += looked;
  for (std::uint32_t i = 0; i < live.cq_end; ++i) {
    if (live.cqs[i] == nullptr) continue;
    LockGuard<SpinLock> lock(live.cqs[i]->lock);
    cool_silent(*live.cqs[i]);
  }
}

/// The peer's QP was destroyed, or taken out of service, before its process ended: two programs that
/// are through do not end at the same moment. As with a HCA nobody tells the other side then, whose
/// last completions must not drown in flushed receives; what it still sends fails.
bool left_in_order(const Qp& qp) noexcept {
  const QpRecord* record = qp.rx_remote != nullptr ? qp.rx_remote : qp.remote;
  return record != nullptr && record->accepts.load(std::memory_order_acquire) == 0;
}

void peer_dead(Peer& peer) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  for (Qp* qp = live.first_qp; qp != nullptr; qp = qp->next_live) {
    if (qp->mode.load(std::memory_order_acquire) < IBV_QPS_RTR ||
        qp->mode.load(std::memory_order_acquire) == IBV_QPS_ERR)
      continue;
    if (qp->peer != &peer && qp->rx_peer != &peer &&
        (qp->own->accepts.load(std::memory_order_relaxed) == 0 ||
         Node::get().find_peer(qp->own->dest_qpn) != &peer))
      continue;
    SendLock lock(*qp);
    if (left_in_order(*qp) && qp->queued() == 0) continue;
    fail_sends(*qp, IBV_WC_RETRY_EXC_ERR);
    raise_qp_event(*qp, IBV_EVENT_QP_FATAL);
  }
}

void progress_now(Peer&) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  progress_all();
}

}  // namespace

constinit const ServiceHooks service_hooks = {.request = serve_requests,
                                              .cq_wake = wake_cq,
                                              .tick = tick,
                                              .sweep = sweep,
                                              .peer_ready = progress_now,
                                              .peer_dead = peer_dead,
                                              .arena_ready = progress_now};

}  // namespace verbatim::shm
