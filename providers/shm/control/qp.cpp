// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/control/qp_control.hpp"

#include <cerrno>

#include "providers/shm/endpoints/endpoint.hpp"
#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/context.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/poll/completion_counters.hpp"
#include "providers/shm/poll/poll_fast.hpp"
#include "providers/shm/queues/attach.hpp"
#include "providers/shm/queues/cq_members.hpp"
#include "providers/shm/queues/failure_log.hpp"
#include "providers/shm/queues/failures.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/meet.hpp"
#include "providers/shm/queues/message_ring.hpp"
#include "providers/shm/queues/polled_rings.hpp"
#include "providers/shm/queues/qp_kind.hpp"
#include "providers/shm/queues/qp_life.hpp"
#include "providers/shm/queues/qp_state.hpp"
#include "providers/shm/queues/shared_receive.hpp"
#include "providers/shm/queues/ud_role.hpp"
#include "providers/shm/transfer/request_service.hpp"
#include "providers/shm/transfer/send_queue.hpp"
#include "providers/shm/windows/windows.hpp"
#include "runtime/base/log.hpp"
#include "runtime/verbs/software/qp_states.hpp"
#include "runtime/verbs/software/retry.hpp"

namespace verbatim::shm {
namespace {

void release_receive_queue(Qp& qp) noexcept {
  qp.rq.release(qp.own->rq_credits.load(std::memory_order_relaxed), qp.memory);
  qp.own->rq_credits.store(0, std::memory_order_release);
}

/// Back to RESET: nothing accepted, nothing queued, nothing of it left in the CQs.
int reset(Qp& qp) noexcept {
  {
    SendLock lock(qp);
    qp.own->accepts.store(0, std::memory_order_seq_cst);
    qp.mode.store(IBV_QPS_RESET, std::memory_order_release);
    qp.plain.state = IBV_QPS_RESET;
    store_relaxed(qp.own->state, IBV_QPS_RESET);
    qp.link.fast = false;
    drop_sends(qp);
  }
  if (qp.endpoints != nullptr) {
    close_outgoing(qp);
    close_incoming(qp);
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
    LockGuard<BiasedLock> posting(qp.rq.lock);
    LockGuard<BiasedLock> guard(qp.recv_cq->lock);
    if (qp.in.hot_index != Responder::kNotHot) drop_hot(*qp.recv_cq, qp.in.hot_index);
    detach_receiver(qp);
    release_receive_queue(qp);
    close_receive_counts(qp);
    qp.in.head.store(0, std::memory_order_relaxed);
    qp.rq.tail.store(0, std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < qp.in.held_capacity; ++i)
      qp.in.held[i].index = HeldReceive::kNone;
    qp.in.held_count = 0;
    qp.in.last_receive_said = false;
    qp.in.flush_after = 0;
    qp.in.broken = false;
    qp.in.lied = false;
    if (qp.datagrams != nullptr && qp.datagrams->inbox != nullptr) empty_srq(*qp.datagrams->inbox);
  }
  forget_completions(*qp.send_cq, qp);
  if (qp.recv_cq != qp.send_cq) forget_completions(*qp.recv_cq, qp);
  SendLock lock(qp);
  qp.link.fast = false;
  qp.lingering = unread(qp);
  if (!qp.lingering) detach(qp);
  store_relaxed(qp.own->posted, 0);
  store_relaxed(qp.own->undone, 0);
  qp.strict_unsignaled = 0;
  qp.sq.first_error.forget();
  forget_failures(qp);
  store_relaxed(qp.own->sent_bytes, 0);
  qp.own->polled.store(0, std::memory_order_relaxed);
  qp.own->polled_seen = 0;
  reset_record(qp);
  return 0;
}

/// A new connection: what the old peer has not taken by now is lost to it.
void forget_old_peer(Qp& qp) noexcept {
  SendLock lock(qp);
  if (!qp.lingering) return;
  detach(qp);
  store_relaxed(qp.own->dest_qpn, 0);
  qp.lingering = false;
}

/// From here on the peer may send to us.
void start_accepting(Qp& qp, const ibv_qp_attr& attr, int mask) noexcept {
  QpRecord& own = *qp.own;
  if (qp.datagrams != nullptr) {  // everybody may; through endpoints
    own.accepts.store(next_session(), std::memory_order_release);
    return;
  }
  store_relaxed(own.dest_qpn, attr.dest_qp_num);
  store_relaxed(own.rq_psn, attr.rq_psn & 0xffffff);
  store_relaxed(own.min_rnr_timer, attr.min_rnr_timer);
  store_relaxed(own.max_dest_rd_atomic, attr.max_dest_rd_atomic);
  store_relaxed(own.access, (mask & IBV_QP_ACCESS_FLAGS) != 0 ? attr.qp_access_flags
                                                              : qp.attributes.qp_access_flags);
  const std::uint32_t session = next_session();
  qp.in.session = session;
  // Before anything is accepted: what the peer sends must be found here also after its death.
  const bool known = find_connected_peer(qp) != nullptr;
  // Publishes the lines above; pairs with the load in attach().
  own.accepts.store(session, std::memory_order_release);
  // Once more, since peer_ready() passes over those that do not accept yet.
  if (!known && find_connected_peer(qp) == nullptr) Process::get().want_peer(own.dest_qpn);
}

void change_record(Qp& qp, const ibv_qp_attr& attr, int mask) noexcept {
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0)
    __atomic_store_n(&qp.own->access, attr.qp_access_flags, __ATOMIC_RELEASE);
  if ((mask & IBV_QP_MIN_RNR_TIMER) != 0)
    __atomic_store_n(&qp.own->min_rnr_timer, attr.min_rnr_timer, __ATOMIC_RELEASE);
  if ((mask & IBV_QP_QKEY) != 0) store_relaxed(qp.own->qkey, attr.qkey);
  if ((mask & IBV_QP_SQ_PSN) != 0 && qp.datagrams == nullptr)
    store_relaxed(qp.own->sq_psn, attr.sq_psn & 0xffffff);
  if ((mask & IBV_QP_RNR_RETRY) != 0) qp.out.rnr_retry = attr.rnr_retry;
  if ((mask & (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT)) != 0) {
    const std::uint32_t timeout =
        (mask & IBV_QP_TIMEOUT) != 0 ? attr.timeout : qp.attributes.timeout;
    const std::uint32_t retries =
        (mask & IBV_QP_RETRY_CNT) != 0 ? attr.retry_cnt : qp.attributes.retry_cnt;
    qp.out.retry_ns = ack_span_ns(timeout, retries);
  }
}

}  // namespace

int modify_qp(verbatim::Qp& handle, ibv_qp_attr& attr, int mask) noexcept {
  Qp& qp = static_cast<Qp&>(handle);
  if (qp.kind != nullptr && qp.kind->modify != nullptr) return qp.kind->modify(qp, attr, mask);
  LockGuard<Mutex> control(qp.control);
  ibv_qp_state from, to;
  if (const int error = check_transition(qp, attr, mask, from, to); error != 0) return error;
  if (to != IBV_QPS_RESET && to != IBV_QPS_ERR && Process::get().has_failed()) return EIO;
  if (to == IBV_QPS_RESET) {
    if (const int error = reset(qp); error != 0) return error;
    apply_attributes(qp, attr, mask);
    return 0;
  }
  if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) {
    forget_old_peer(qp);
    if (qp.datagrams == nullptr) watch(qp);
  }
  {
    SendLock lock(qp);
    // The data path may have met an error since the check: only ERR and RESET lead out of it.
    if (qp.plain.state != from && to != IBV_QPS_ERR) return EINVAL;
    if (to == IBV_QPS_ERR) {
      if (qp.mode.load(std::memory_order_relaxed) != IBV_QPS_ERR) {
        note_ordered(qp);
        enter_error(qp);
      }
      flush_sends(qp);
      apply_attributes(qp, attr, mask);
    } else {
      if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) start_accepting(qp, attr, mask);
      if (from == IBV_QPS_RTR && to == IBV_QPS_RTS && !reserve_ring(qp)) return ENOMEM;
      if (to >= IBV_QPS_INIT) change_record(qp, attr, mask);
      apply_attributes(qp, attr, mask);
      qp.mode.store(to, std::memory_order_release);
      store_relaxed(qp.own->state, to);
      if (to == IBV_QPS_RTR) {
        // Who has found us since start_accepting() did not see RTR; pairs with the fence in
        // attach().
        std::atomic_thread_fence(std::memory_order_seq_cst);
        greet_sender(qp);
      }
      if (to == IBV_QPS_SQD) {
        qp.link.fast = false;
        if (from != IBV_QPS_SQD)
          drain(qp, (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0 && attr.en_sqd_async_notify != 0);
      }
      if (from == IBV_QPS_SQE) note_led_back(qp);
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
  if (qp.kind != nullptr && qp.kind->query != nullptr) return qp.kind->query(qp, attr);
  LockGuard<Mutex> control(qp.control);
  read_attributes(qp, attr);
  attr.sq_draining = attr.qp_state == IBV_QPS_SQD && qp.sq.drain.is_under_way();
  return 0;
}

int destroy_qp(verbatim::Qp& handle) noexcept {
  Qp& qp = static_cast<Qp&>(handle);
  say_failures();
  if (qp.kind != nullptr && qp.kind->destroy != nullptr) return qp.kind->destroy(qp);
  if (const int error = end_qp(qp); error != 0) return error;
  Context::of(qp.plain.context).events.retire(qp);
  // Here, not with the object, which may stay for its peer, and whose end comes under a lock.
  free_queues(qp);
  retire_ended(qp);
  return 0;
}

int end_qp(Qp& qp) noexcept {
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
  close_windows_of(qp);
  leave_counters(qp);
  delist(qp);
  remove_member(*qp.recv_cq, qp);
  return 0;
}

void retire_ended(Qp& qp) noexcept {
  give_answers_back(qp);
  LockGuard<Mutex> guard(live.mutex);
  park(qp);
}

}  // namespace verbatim::shm
