// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/arrived.hpp"

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/arrival.hpp"
#include "providers/shm/queues/attach.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/qp_event.hpp"
#include "providers/shm/queues/shared_receive.hpp"
#include "providers/shm/queues/ud_role.hpp"
#include "runtime/sync/membarrier.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {
namespace {

/// A flush waits this long for a sender in the middle of a message to finish it.
constexpr std::uint64_t kFlushPatienceNs = 100'000'000;

}  // namespace

bool sender_is_busy(Qp& qp) noexcept {
  if (qp.in.session == 0 || load_relaxed(qp.own->dest_qpn) == qp.own->qpn) return false;
  if (qp.in.remote == nullptr) {
    Process& process = Process::get();
    const std::uint32_t dest_qpn = load_relaxed(qp.own->dest_qpn);
    if (process.find_peer(dest_qpn) != nullptr) return false;
    process.want_peer(dest_qpn);
    if (!process.is_connecting(dest_qpn)) return false;
  } else {
    if (!qp.in.peer->alive.load(std::memory_order_acquire)) return false;
    if ((qp.in.remote->active.load(std::memory_order_acquire) & QpRecord::kUnfenced) != 0 &&
        qp.in.fenced_for != qp.in.session) {
      fence_or_outwait_registered_threads();
      qp.in.fenced_for = qp.in.session;
    }
    if ((qp.in.remote->active.load(std::memory_order_acquire) & 1) == 0) return false;
  }
  const std::uint64_t now = now_ns();
  if (qp.in.flush_after == 0) {
    qp.in.flush_after = now + kFlushPatienceNs;
    // Who sleeps on the CQ is told when the time is over: nobody else will.
    std::uint64_t none = 0;
    (void)live.next_flush.compare_exchange_strong(none, qp.in.flush_after,
                                                  std::memory_order_seq_cst);
    Process::get().want_tick(true);
  }
  return now < qp.in.flush_after;
}

bool holds_message(Qp& qp) noexcept {
  std::uint64_t h;
  // After its sender has left, what stands in the ring is somebody else's.
  return attach_receiver(qp) &&
         (qp.in.pack.has(qp.in.head.load(std::memory_order_relaxed)) ||
          qp.in.remote->tx_session.load(std::memory_order_acquire) == qp.in.remote_session) &&
         find_next_message(qp, h) != nullptr;
}

bool has_message(Qp& qp) noexcept {
  const std::uint64_t index = qp.in.head.load(std::memory_order_relaxed);
  if (holds_message(qp))
    return qp.srq == nullptr || held_for(qp, index) != nullptr || has_receive(*qp.srq);
  if (qp.in.is_muted) return qp.in.held_count != 0;
  if (qp.mode.load(std::memory_order_acquire) != IBV_QPS_ERR) return false;
  if (qp.datagrams != nullptr && qp.datagrams->inbox != nullptr)
    return has_receive(*qp.datagrams->inbox);
  return index != qp.rq.tail.load(std::memory_order_acquire);
}

void say_last_receive(Qp& qp) noexcept {
  if (qp.srq == nullptr || qp.datagrams != nullptr || qp.ep.parent != nullptr ||
      qp.in.last_receive_said || qp.mode.load(std::memory_order_acquire) != IBV_QPS_ERR ||
      has_message(qp) || sender_is_busy(qp))
    return;
  qp.in.last_receive_said = true;
  raise_qp_event(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
}

}  // namespace verbatim::shm
