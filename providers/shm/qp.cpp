// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/qp.hpp"

#include <bit>
#include <cerrno>
#include <cstdlib>

#include <sched.h>

#include "providers/shm/context.hpp"
#include "providers/shm/fabric/node.hpp"
#include "providers/shm/live.hpp"
#include "providers/shm/receive.hpp"
#include "providers/shm/region_fast.hpp"
#include "providers/shm/send_queue.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/base/scope_exit.hpp"
#include "runtime/time/clock.hpp"
#include "runtime/verbs/software/qp_states.hpp"

namespace verbatim::shm {
namespace {

int check_caps(const ibv_qp_init_attr_ex& attr) noexcept {
  const ibv_qp_cap& cap = attr.cap;
  const struct {
    const char* name;
    std::uint32_t asked, limit;
  } limits[] = {{"max_send_wr", cap.max_send_wr, kMaxWr},
                {"max_recv_wr", cap.max_recv_wr, kMaxWr},
                {"max_send_sge", cap.max_send_sge, kMaxSge},
                {"max_recv_sge", cap.max_recv_sge, kMaxSge},
                {"max_inline_data", cap.max_inline_data, kMaxInline}};
  for (const auto& limit : limits) {
    if (limit.asked <= limit.limit) continue;
    log_error("create_qp: %s %u asked, shm has %u", limit.name, limit.asked, limit.limit);
    return EINVAL;
  }
  return 0;
}

void reset_record(Qp& qp) noexcept {
  QpRecord& record = *qp.own;
  record.accepts.store(0, std::memory_order_relaxed);
  record.attention.store(kDoorbell, std::memory_order_relaxed);
  // A peer that has yet to take our last messages finds them by this number.
  if (!qp.lingering) poke(record.dest_qpn, 0);
  record.consumed.store(0, std::memory_order_relaxed);
  record.stream_consumed.store(0, std::memory_order_relaxed);
}

void release_receive_queue(Qp& qp) noexcept {
  if (qp.own_credits != nullptr) {
    const std::size_t entries = std::size_t{1} << qp.rq_log;
    Node::get().segment().release(
        qp.own->rq_credits.load(std::memory_order_relaxed),
        entries * sizeof(std::uint64_t) + entries * qp.max_recv_sge * sizeof(ReceiveSge));
  }
  qp.own->rq_credits.store(0, std::memory_order_release);
  qp.own_credits = nullptr;
  qp.own_sges = nullptr;
}

/// Back to RESET: nothing accepted, nothing queued, nothing of it left in the CQs.
int reset(Qp& qp) noexcept {
  {
    SendLock lock(qp);
    qp.own->accepts.store(0, std::memory_order_seq_cst);
    qp.mode.store(IBV_QPS_RESET, std::memory_order_release);
    qp.plain.state = IBV_QPS_RESET;
    qp.fast = false;
    drop_sends(qp);
  }
  if (!await_peer_of(qp)) {
    log_error(
        "QP 0x%06x: the peer process was stopped in the middle of a copy to this QP's memory: "
        "continue it and try again",
        qp.own->qpn);
    return EBUSY;
  }
  unwatch(qp);
  {
    LockGuard<BiasedLock> posting(qp.rq_lock);
    LockGuard<BiasedLock> guard(qp.recv_cq->lock);
    if (qp.hot_index != Qp::kNotHot) drop_hot(*qp.recv_cq, qp.hot_index);
    detach_receiver(qp);
    release_receive_queue(qp);
    qp.rq_head.store(0, std::memory_order_relaxed);
    qp.rq_tail.store(0, std::memory_order_relaxed);
    qp.flush_after = 0;
    qp.broken = false;
    qp.lied = false;
  }
  forget_completions(*qp.send_cq, qp);
  if (qp.recv_cq != qp.send_cq) forget_completions(*qp.recv_cq, qp);
  SendLock lock(qp);
  qp.fast = false;
  qp.lingering = unread(qp);
  if (!qp.lingering) detach(qp);
  qp.sq_next = 0;
  qp.first_flush = IBV_WC_WR_FLUSH_ERR;
  qp.sq_polled.store(0, std::memory_order_relaxed);
  reset_record(qp);
  return 0;
}

void free_qp(Qp& qp) noexcept {
  std::free(qp.queue);
  std::free(qp.queue_sges);
  std::free(qp.queue_inline);
  std::free(qp.rq_wr_ids);
  std::free(qp.rq_num_sge);
  destroy_nothrow(&qp);
}

/// Gives back what peers see of a QP, and the QP.
void retire_qp(Qp& qp) noexcept {
  detach(qp);
  __atomic_store_n(&qp.own->qpn, 0u, __ATOMIC_RELEASE);
  Node::get().give_qpn(qp.index);
  free_qp(qp);
}

/// A new connection: what the old peer has not taken by now is lost to it.
void forget_old_peer(Qp& qp) noexcept {
  SendLock lock(qp);
  if (!qp.lingering) return;
  detach(qp);
  poke(qp.own->dest_qpn, 0);
  qp.lingering = false;
}

/// From here on the peer may send to us.
void start_accepting(Qp& qp, const ibv_qp_attr& attr, int mask) noexcept {
  QpRecord& own = *qp.own;
  poke(own.dest_qpn, attr.dest_qp_num);
  poke(own.rq_psn, attr.rq_psn & 0xffffff);
  poke(own.min_rnr_timer, attr.min_rnr_timer);
  poke(own.max_dest_rd_atomic, attr.max_dest_rd_atomic);
  poke(own.access,
       (mask & IBV_QP_ACCESS_FLAGS) != 0 ? attr.qp_access_flags : qp.attributes.qp_access_flags);
  std::uint32_t session;
  do {
    session = live.sessions.fetch_add(1, std::memory_order_relaxed) + 1;
  } while (session == 0);
  qp.session = session;
  // Before anything is accepted: what the peer sends must be found here also after its death.
  const bool known = meet_peer(qp) != nullptr;
  // Publishes the lines above; pairs with the load in attach().
  own.accepts.store(session, std::memory_order_release);
  // Once more, since peer_ready() passes over those that do not accept yet.
  if (!known && meet_peer(qp) == nullptr) Node::get().want_peer(own.dest_qpn);
}

void change_while_connected(Qp& qp, const ibv_qp_attr& attr, int mask) noexcept {
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0)
    __atomic_store_n(&qp.own->access, attr.qp_access_flags, __ATOMIC_RELEASE);
  if ((mask & IBV_QP_MIN_RNR_TIMER) != 0)
    __atomic_store_n(&qp.own->min_rnr_timer, attr.min_rnr_timer, __ATOMIC_RELEASE);
  if ((mask & IBV_QP_SQ_PSN) != 0) poke(qp.own->sq_psn, attr.sq_psn & 0xffffff);
  if ((mask & IBV_QP_RNR_RETRY) != 0) qp.rnr_retry = attr.rnr_retry;
  if ((mask & (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT)) != 0) {
    const std::uint32_t timeout =
        (mask & IBV_QP_TIMEOUT) != 0 ? attr.timeout : qp.attributes.timeout;
    const std::uint32_t retries =
        (mask & IBV_QP_RETRY_CNT) != 0 ? attr.retry_cnt : qp.attributes.retry_cnt;
    // IBTA 9.7.6.1.3: 4.096 us x 2^timeout for each try; 0 is for ever.
    qp.retry_ns =
        timeout == 0 ? ~std::uint64_t{0} : (std::uint64_t{4096} << (timeout & 31)) * (retries + 1);
  }
}

}  // namespace

void SendLock::take_slowly() noexcept {
  for (std::uint32_t spins = 1;; ++spins) {
    if ((word_.load(std::memory_order_relaxed) & 1) == 0 && try_take()) return;
    if (spins % 1024 == 0)
      ::sched_yield();
    else
      cpu_pause();
  }
}

void enter_error(Qp& qp) noexcept {
  qp.mode.store(IBV_QPS_ERR, std::memory_order_release);
  __atomic_store_n(&qp.plain.state, IBV_QPS_ERR, __ATOMIC_RELAXED);  // query_qp may look
  qp.own->accepts.store(0, std::memory_order_seq_cst);
  qp.fast = false;
  announce(qp);
}

void raise_qp_event(Qp& qp, ibv_event_type type) noexcept {
  ibv_async_event event{};
  event.event_type = type;
  event.element.qp = &qp.plain;
  Context::of(qp.plain.context).events.raise(event);
}

int create_qp(verbatim::Context&, ibv_qp_init_attr_ex& attr, verbatim::Qp** out) noexcept {
  if (attr.qp_type != IBV_QPT_RC) {
    log_error("create_qp: shm offers RC queue pairs; type %d is not supported",
              static_cast<int>(attr.qp_type));
    return EOPNOTSUPP;
  }
  if (attr.srq != nullptr) {
    log_error("create_qp: shm has no shared receive queues");
    return EOPNOTSUPP;
  }
  if (attr.send_cq == nullptr || attr.recv_cq == nullptr) return EINVAL;
  if (const int error = check_caps(attr); error != 0) return error;

  retire_parked();
  Qp* qp = make_nothrow<Qp>();
  if (qp == nullptr) return ENOMEM;
  Node& node = Node::get();
  std::uint32_t index, qpn;
  int error = node.take_qpn(index, qpn);
  if (error == 0) {
    qp->own = &node.segment().qps()[index];
    error = node.segment().back(qp->own, sizeof(QpRecord));
    if (error != 0) node.give_qpn(index);
  }
  if (error != 0) {
    destroy_nothrow(qp);
    return error;
  }
  attr.cap.max_inline_data = kMaxInline;
  if (attr.cap.max_send_sge == 0) attr.cap.max_send_sge = 1;
  if (attr.cap.max_recv_sge == 0) attr.cap.max_recv_sge = 1;
  if (attr.cap.max_send_wr == 0) attr.cap.max_send_wr = 1;
  qp->index = index;
  qp->plain.qp_num = qpn;
  qp->plain.handle = index;
  qp->send_cq = static_cast<Cq*>(&verbatim::Cq::from(attr.send_cq));
  qp->recv_cq = static_cast<Cq*>(&verbatim::Cq::from(attr.recv_cq));
  qp->own_regions = node.segment().regions();
  qp->own_region_capacity = node.segment().head().mr_capacity;
  qp->pd_number = attr.pd->handle;
  qp->sq_entries = attr.cap.max_send_wr;
  qp->max_inline = kMaxInline;
  qp->max_send_sge = static_cast<std::uint16_t>(attr.cap.max_send_sge);
  qp->max_recv_sge = static_cast<std::uint16_t>(attr.cap.max_recv_sge);
  qp->signal_all = attr.sq_sig_all != 0;
  qp->rq_max = attr.cap.max_recv_wr;
  const std::uint32_t entries = std::bit_ceil(qp->rq_max == 0 ? 1u : qp->rq_max);
  qp->rq_log = static_cast<std::uint32_t>(std::countr_zero(entries));

  QpRecord& own = *qp->own;
  reset_record(*qp);
  own.tx_session.store(0, std::memory_order_relaxed);
  own.ring.store(0, std::memory_order_relaxed);
  own.window.store(0, std::memory_order_relaxed);
  own.rq_credits.store(0, std::memory_order_relaxed);
  own.asked.store(0, std::memory_order_relaxed);
  own.answered.store(0, std::memory_order_relaxed);
  own.stream_produced.store(0, std::memory_order_relaxed);
  poke(own.rq_entries, entries);
  poke(own.rq_max_sge, qp->max_recv_sge);
  poke(own.pd, qp->pd_number);
  __atomic_store_n(&own.qpn, qpn, __ATOMIC_RELEASE);
  error = add_member(*qp->recv_cq, *qp);
  if (error != 0) {
    node.give_qpn(index);
    destroy_nothrow(qp);
    return error;
  }
  enlist(*qp);
  *out = qp;
  return 0;
}

int modify_qp(verbatim::Qp& handle, ibv_qp_attr& attr, int mask) noexcept {
  Qp& qp = static_cast<Qp&>(handle);
  LockGuard<Mutex> control(qp.control);
  ibv_qp_state from, to;
  if (const int error = check_transition(qp, attr, mask, from, to); error != 0) return error;
  if (to == IBV_QPS_RESET) {
    if (const int error = reset(qp); error != 0) return error;
    apply_attributes(qp, attr, mask);
    return 0;
  }
  if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) {
    forget_old_peer(qp);
    watch(qp);
  }
  {
    SendLock lock(qp);
    // The data path may have met an error since the check: only ERR and RESET lead out of it.
    if (qp.plain.state != from && to != IBV_QPS_ERR) return EINVAL;
    if (to == IBV_QPS_ERR) {
      if (qp.mode.load(std::memory_order_relaxed) != IBV_QPS_ERR) enter_error(qp);
      flush_sends(qp);
      apply_attributes(qp, attr, mask);
    } else {
      if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) start_accepting(qp, attr, mask);
      if (to >= IBV_QPS_RTR) change_while_connected(qp, attr, mask);
      apply_attributes(qp, attr, mask);
      qp.mode.store(to, std::memory_order_release);
      if (to == IBV_QPS_SQD) {
        qp.fast = false;
        if (qp.queued() == 0 && attr.en_sqd_async_notify != 0 &&
            (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0)
          raise_qp_event(qp, IBV_EVENT_SQ_DRAINED);
      }
      if (to == IBV_QPS_RTS) advance(qp, lock);
    }
  }
  if (to == IBV_QPS_ERR && !await_peer_of(qp)) {
    log_error(
        "QP 0x%06x is in the error state, but its peer process was stopped in the middle of a "
        "copy to this QP's memory: continue it and modify again",
        qp.own->qpn);
    return EBUSY;
  }
  return 0;
}

int query_qp(verbatim::Qp& handle, ibv_qp_attr& attr, int, ibv_qp_init_attr&) noexcept {
  Qp& qp = static_cast<Qp&>(handle);
  LockGuard<Mutex> control(qp.control);
  read_attributes(qp, attr);
  return 0;
}

int destroy_qp(verbatim::Qp& handle) noexcept {
  Qp& qp = static_cast<Qp&>(handle);
  {
    LockGuard<Mutex> control(qp.control);
    if (const int error = reset(qp); error != 0) return error;
  }
  {
    Cq& cq = *qp.send_cq;
    LockGuard<SpinLock> guard(cq.pending_lock);
    if (qp.is_pending.load(std::memory_order_relaxed)) {
      for (Qp** link = &cq.pending_head; *link != nullptr; link = &(*link)->next_pending) {
        if (*link != &qp) continue;
        *link = qp.next_pending;
        cq.pending_count.fetch_sub(1, std::memory_order_relaxed);
        break;
      }
    }
  }
  delist(qp);
  remove_member(*qp.recv_cq, qp);
  Context::of(qp.plain.context).events.retire(qp);
  if (qp.service_bounce != 0) Node::get().segment().release(qp.service_bounce, kBounceBytes);
  if (!qp.lingering) {
    retire_qp(qp);
    return 0;
  }
  LockGuard<Mutex> guard(live.mutex);
  qp.next_live = live.parked;
  live.parked = &qp;
  return 0;
}

void retire_parked() noexcept {
  LockGuard<Mutex> guard(live.mutex);
  for (Qp** link = &live.parked; *link != nullptr;) {
    Qp& qp = **link;
    if (unread(qp)) {
      link = &qp.next_live;
      continue;
    }
    *link = qp.next_live;
    retire_qp(qp);
  }
}

void forget_parked() noexcept {
  LockGuard<Mutex> guard(live.mutex);
  while (live.parked != nullptr) {
    Qp& qp = *live.parked;
    live.parked = qp.next_live;
    if (Peer* peer = qp.met.load(std::memory_order_relaxed); peer != nullptr)
      Node::get().release_peer(*peer);
    free_qp(qp);
  }
}

}  // namespace verbatim::shm
