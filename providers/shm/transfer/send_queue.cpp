// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/transfer/send_queue.hpp"

#include <sched.h>

#include <cerrno>

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/queues/attach.hpp"
#include "providers/shm/queues/counted_requests.hpp"
#include "providers/shm/queues/cq_events.hpp"
#include "providers/shm/queues/failure_log.hpp"
#include "providers/shm/queues/failures.hpp"
#include "providers/shm/queues/meet.hpp"
#include "providers/shm/queues/qp_event.hpp"
#include "providers/shm/queues/qp_kind.hpp"
#include "providers/shm/queues/qp_state.hpp"
#include "providers/shm/transfer/request_ring.hpp"
#include "providers/shm/transfer/send_fast.hpp"
#include "providers/shm/transfer/send_wait.hpp"
#include "providers/shm/transfer/service_requests.hpp"
#include "providers/shm/windows/authorize.hpp"
#include "providers/shm/windows/windows.hpp"
#include "runtime/base/log.hpp"
#include "runtime/time/clock.hpp"
#include "runtime/verbs/opcodes.hpp"
#include "runtime/verbs/placement.hpp"
#include "runtime/verbs/strict.hpp"

namespace verbatim::shm {
namespace {

/// Nothing of it concerns the peer.
bool is_at_home(unsigned opcode) noexcept {
  return opcode == IBV_WR_BIND_MW || opcode == IBV_WR_LOCAL_INV;
}

}  // namespace

// It comes with its first use: most QPs never wait.
namespace {

/// The first post of a queue pair waits for its ring anyway: the time to look where the memory lies
/// that this thread sends from.
void judge_first_post(const Qp& qp, const ibv_send_wr& wr) noexcept {
  Region region;
  for (int i = 0; i < wr.num_sge && (wr.send_flags & IBV_SEND_INLINE) == 0; ++i) {
    if (own_regions(qp).find(wr.sg_list[i].lkey, region) && region.length != 0 &&
        region.address != 0)
      warn_of_remote_buffer("posted", reinterpret_cast<const void*>(region.address), region.length);
  }
}

int enqueue(Qp& qp, const ibv_send_wr& wr) noexcept {
  SendQueue& queue = qp.sq;
  if (!queue.has_posted) [[unlikely]]
    judge_first_post(qp, wr);
  queue.has_posted = true;
  // Requests that find nobody waiting take the same few places, which stay in the caches.
  if (queue.head == queue.tail) queue.head = queue.tail = 0;
  if (!queue.store.has_place(qp.memory, qp.sq_entries, qp.max_send_sge, queue.head, queue.tail))
    return ENOMEM;
  const std::uint32_t at = queue.tail;
  PendingSend& send = queue.store.keep(at, wr, copy_inline);
  send.immediate = wr.imm_data;
  if (qp.kind != nullptr && qp.kind->address != nullptr && qp.kind->address(qp, wr, send)) {
    // All of it is said.
  } else if (wr.opcode == IBV_WR_BIND_MW) {
    send.window = wr.bind_mw.mw;
    send.rkey = wr.bind_mw.rkey;
    send.region = wr.bind_mw.bind_info.mr;
    send.remote_address = wr.bind_mw.bind_info.addr;
    send.compare_add = wr.bind_mw.bind_info.length;
    send.immediate = wr.bind_mw.bind_info.mw_access_flags;
  } else if (is_atomic(wr.opcode) || wr.opcode == IBV_WR_FLUSH) {
    send.remote_address = wr.wr.atomic.remote_addr;
    send.rkey = wr.wr.atomic.rkey;
    send.compare_add = wr.wr.atomic.compare_add;
    send.swap = wr.wr.atomic.swap;
  } else {
    send.remote_address = wr.wr.rdma.remote_addr;
    send.rkey = wr.wr.rdma.rkey;
  }
  send.sq_index = qp.take_places(1);
  ++queue.tail;
  qp.note_queued();
  store_relaxed(qp.own->undone, qp.own->undone + 1);
  return 0;
}

/// `by_domain`: the send lock is held by the thread of the queue pair's domain.
void complete_send(Qp& qp, const PendingSend& send, ibv_wc_status status, bool by_domain) noexcept {
  if (status == IBV_WC_SUCCESS) {
    qp.count_sent(is_at_home(send.opcode) ? 0 : send.length);
    store_relaxed(qp.own->undone, qp.own->undone - 1);
  } else {
    qp.own->errors.fetch_add(1, std::memory_order_relaxed);
  }
  if (qp.sq.counted != nullptr) [[unlikely]]
    count_request(qp, send.opcode, send.length, status == IBV_WC_SUCCESS);
  if (status == IBV_WC_SUCCESS && (send.flags & IBV_SEND_SIGNALED) == 0 && !qp.signal_all) return;
  const bool returns_bytes = send.opcode == IBV_WR_RDMA_READ || is_atomic(send.opcode);
  const auto bytes = static_cast<std::uint32_t>(is_atomic(send.opcode) ? 8 : send.length);
  DomainGuard guard(qp.send_cq->lock,
                    by_domain && qp.send_cq->in_domain.load(std::memory_order_relaxed));
  push_locked(*qp.send_cq, {send.wr_id, &qp, returns_bytes ? bytes : 0, send.sq_index,
                            static_cast<std::uint16_t>(completed_as(send.opcode)),
                            static_cast<std::uint8_t>(status), true, 0});
}

/// Waiting request number `i`, of [head, tail).
PendingSend& waiting(Qp& qp, std::uint32_t i) noexcept { return qp.sq.store.at(i); }
PendingSend& head_of(Qp& qp) noexcept { return waiting(qp, qp.sq.head); }

void pop(Qp& qp) noexcept {
  ++qp.sq.head;
  qp.note_queued();
  qp.sq.progress.clear();
}

/// Where the bytes of a waiting request's one piece lie.
bool find_piece(Qp& qp, std::uint32_t i, const unsigned char*& from) noexcept {
  const PendingSend& send = waiting(qp, i);
  const ibv_sge& sge = *qp.sq.store.sges_of(i);
  from = reinterpret_cast<const unsigned char*>(sge.addr);
  return send.is_inline || send.length == 0 ||
         find_local_bytes(qp.keys(), sge.lkey, sge.addr, sge.length, 0, from);
}

bool is_small_send(const PendingSend& send) noexcept {
  return (send.opcode == IBV_WR_SEND || send.opcode == IBV_WR_SEND_WITH_IMM) && send.num_sge <= 1 &&
         send.length <= Slot::kInlineBytes;
}

/// May the waiting request, and the one behind it, share a slot?
bool shares_slot(Qp& qp, std::uint32_t i) noexcept {
  if (i + 1 == qp.sq.tail) return false;
  const PendingSend& send = waiting(qp, i);
  const PendingSend& next = waiting(qp, i + 1);
  return send.opcode == IBV_WR_SEND && next.opcode == IBV_WR_SEND && next.num_sge == 1 &&
         send.length == next.length && ((send.flags | next.flags) & IBV_SEND_SOLICITED) == 0;
}

/// May SENDs from the head go straight into the ring, against receives of the peer's own?
bool may_run(const Qp& qp) noexcept {
  return qp.link.remote != nullptr && qp.out.ring.slots != nullptr && qp.link.credits != nullptr &&
         qp.datagrams == nullptr && qp.xrc == XrcRole::kNone && !qp.sq.progress.streaming &&
         !qp.sq.progress.placing && qp.mode.load(std::memory_order_relaxed) == IBV_QPS_RTS &&
         qp.link.remote->accepts.load(std::memory_order_acquire) == qp.link.remote_session &&
         !is_dead(qp);
}

/// The small SENDs at the head, as many as there are receives for. A sender that is faster than its
/// receiver sends all it sends this way: it must not become the slower of the two by that.
void move_small_sends(Qp& qp, const SendLock& lock) noexcept {
  if (!is_small_send(head_of(qp)) || !may_run(qp)) return;
  Sends sends(qp);
  const std::uint64_t first = sends.sent;
  unsigned flags = 0;
  do {
    const PendingSend& send = head_of(qp);
    if (!is_small_send(send)) break;
    const auto bytes = static_cast<std::uint32_t>(send.length);
    std::uint32_t i = qp.sq.head;
    const std::uint64_t most = sends.most_in_slot(qp, bytes, shares_slot(qp, i));
    if (most == 0) break;
    std::uint32_t count = sends.put_some(
        bytes, most, [&](const unsigned char*& from) { return find_piece(qp, i, from); },
        [&] { return shares_slot(qp, i++); },
        [&] {
          return send_header(send.opcode == IBV_WR_SEND_WITH_IMM ? header::kImmediate : 0u,
                             send.flags, send.immediate);
        });
    if (count == 0) break;
    sends.put_back(qp);
    for (; count != 0; --count) {
      const PendingSend& done = head_of(qp);
      flags |= done.flags;
      complete_send(qp, done, IBV_WC_SUCCESS, lock.by_domain());
      pop(qp);
    }
  } while (qp.queued() != 0);
  sends.put_back(qp);
  if (sends.sent != first && must_ring(qp)) ring_peer(qp, (flags & IBV_SEND_SOLICITED) != 0);
}

Step send_and_invalidate(Qp& qp, SendLock& lock, const PendingSend& send,
                         const LocalRange* local) noexcept {
  const bool begun = qp.sq.progress.streaming || qp.sq.progress.placing;
  if (!begun) {
    if (!may_invalidate(qp, send.immediate))
      return Step::fails(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    if (remembers_enough(qp)) {
      // The peer must take one of those messages; its service thread does when nobody polls. More
      // than once, since it leaves a message for which it found us copying.
      constexpr std::uint64_t kAskAgainNs = 100'000;
      const std::uint64_t now = now_ns();
      if (now - qp.sq.progress.stalled_since > kAskAgainNs) {
        qp.sq.progress.stalled_since = now;
        wake_service_of_peer(qp);
      }
      return Step::waits(Wait::kStream);
    }
  }
  const Step step = send_message(qp, lock, send, local);
  if (step.kind == Step::Kind::kDone) note_invalidated(qp, send.immediate);
  return step;
}

/// One step for the request at the head.
Step step(Qp& qp, SendLock& lock, const PendingSend& send) noexcept {
  if (qp.mode.load(std::memory_order_relaxed) == IBV_QPS_SQD && !qp.sq.drain.is_under_way())
    return Step::waits(Wait::kNothing);
  if (is_at_home(send.opcode)) return do_window(qp, send);
  if (send.length > kMaxMessage) return Step::fails(IBV_WC_LOC_LEN_ERR);
  const bool reads = send.opcode == IBV_WR_RDMA_READ || is_atomic(send.opcode);
  if (is_atomic(send.opcode) && send.length < 8) return Step::fails(IBV_WC_LOC_LEN_ERR);
  LocalRange local[kMaxSge];
  const ibv_sge* sges = qp.sq.store.sges_of(qp.sq.head);
  if (!resolve_local(qp, send, sges, reads ? IBV_ACCESS_LOCAL_WRITE : 0, local))
    return Step::fails(IBV_WC_LOC_PROT_ERR);
  const bool by_kind = qp.kind != nullptr && qp.kind->send != nullptr;
  if (by_kind && qp.kind->is_unconnected) return qp.kind->send(qp, lock, send, local);
  if (const Wait wait = attach(qp); wait != Wait::kNothing) {
    // The receiver found out that the memory of a message under way is gone, or of one that had
    // arrived: nothing after it can be delivered.
    if (qp.link.remote != nullptr && load_relaxed(qp.link.remote->refused) != 0)
      return Step::fails(IBV_WC_REM_OP_ERR);
    return Step::waits(wait);
  }
  // What the dead have shown can still be copied from and to. The service thread ends that too, but
  // may wait long for a lock that is taken again and again.
  if (is_dead(qp)) return Step::fails(IBV_WC_RETRY_EXC_ERR);
  if (by_kind) return qp.kind->send(qp, lock, send, local);
  return perform(qp, lock, send, local);
}

void mark_pending(Qp& qp) noexcept {
  if (qp.is_pending.load(std::memory_order_relaxed)) return;
  Cq& cq = *qp.send_cq;
  {
    LockGuard<SpinLock> guard(cq.pending_lock);
    qp.is_pending.store(true, std::memory_order_relaxed);
    qp.next_pending = cq.pending_head;
    cq.pending_head = &qp;
    cq.pending_count.fetch_add(1, std::memory_order_relaxed);
  }
  // The application may never poll: then the service thread moves it on.
  Process::get().want_tick(true);
}

}  // namespace

bool resolve_local(const Qp& qp, const PendingSend& send, const ibv_sge* sges, std::uint32_t need,
                   LocalRange* out) noexcept {
  // An atomic returns eight bytes, whatever its list has room for.
  const std::uint64_t bytes = is_atomic(send.opcode) ? sizeof(std::uint64_t) : send.length;
  const auto find = [&](const ibv_sge& sge, std::uint64_t used, LocalRange& place) noexcept {
    place = {reinterpret_cast<unsigned char*>(sge.addr), used, false};
    return send.is_inline || find_local_range(qp.keys(), sge.lkey, sge.addr, used, need, place);
  };
  // Whether an atomic's list is long enough is judged by others.
  return find_places(sges, send.num_sge, bytes, out, find) != IBV_WC_LOC_PROT_ERR;
}

std::uint64_t remote_bytes(const PendingSend& send) noexcept {
  if (is_atomic(send.opcode) || send.opcode == IBV_WR_ATOMIC_WRITE) return 8;
  return send.opcode == IBV_WR_FLUSH ? send.compare_add : send.length;
}

Step perform(Qp& qp, SendLock& lock, const PendingSend& send, const LocalRange* local) noexcept {
  if (is_atomic(send.opcode)) return do_atomic(qp, send, local);
  switch (send.opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
      return send_message(qp, lock, send, local);
    case IBV_WR_SEND_WITH_INV:
      return send_and_invalidate(qp, lock, send, local);
    case IBV_WR_ATOMIC_WRITE:
      return write_word(qp, send, local);
    case IBV_WR_FLUSH:
      return flush_memory(qp, send);
    default:
      break;
  }
  return write_or_read(qp, lock, send, local);
}

void complete_now(Qp& qp, const SendLock& lock, const ibv_send_wr& wr,
                  std::uint32_t bytes) noexcept {
  const std::uint32_t sq_index = qp.take_places(1);
  qp.count_sent(bytes);
  if ((wr.send_flags & IBV_SEND_SIGNALED) == 0 && !qp.signal_all) return;
  DomainGuard guard(qp.send_cq->lock,
                    lock.by_domain() && qp.send_cq->in_domain.load(std::memory_order_relaxed));
  push_locked(*qp.send_cq, {wr.wr_id, &qp, 0, sq_index, IBV_WC_SEND, IBV_WC_SUCCESS, true, 0});
}

void drain(Qp& qp, bool tells) noexcept {
  if (qp.sq.drain.begin(tells, qp.queued() != 0)) raise_qp_event(qp, IBV_EVENT_SQ_DRAINED);
}

void advance(Qp& qp, SendLock& lock) noexcept {
  while (qp.queued() != 0) {
    move_small_sends(qp, lock);
    if (qp.queued() == 0) break;
    const PendingSend& send = head_of(qp);
    Step result = step(qp, lock, send);
    if (qp.may_lose) result = lose(qp, result);
    // What waits for an unreliable one's peer has been judged: it has no timeout to sit out.
    const bool judged = qp.may_lose && result.wait == Wait::kPeer;
    if (result.kind == Step::Kind::kWait && !judged) {
      result = judge_wait(qp, result.wait);
      if (qp.may_lose) result = lose(qp, result);
    }
    if (result.kind == Step::Kind::kFail) {
      // Before the peer hears of it: its end would look like the cause.
      note_failed_send(qp, result.status);
      if (result.tell != 0) tell_fault(qp, result.tell, result.status);
      fail_sends(qp, result.status);
      if (is_dead(qp)) raise_qp_event(qp, IBV_EVENT_QP_FATAL);  // as service_hooks.cpp would have
      return;
    }
    if (result.kind == Step::Kind::kWait) {
      qp.sq.awaits_connection = result.wait == Wait::kPeer;
      if (result.wait == Wait::kService) ask_ahead(qp, lock);
      qp.link.fast = false;
      const bool was_pending = qp.is_pending.load(std::memory_order_relaxed);
      mark_pending(qp);
      // Whom it asked to connect may have accepted it, and told, before there was anything to move
      // on.
      if (qp.endpoints != nullptr && !was_pending && result.wait == Wait::kPeer) continue;
      return;
    }
    complete_send(qp, send, IBV_WC_SUCCESS, lock.by_domain());
    pop(qp);
    if (qp.mode.load(std::memory_order_relaxed) == IBV_QPS_SQD && !is_asked(qp) &&
        qp.sq.drain.end())
      raise_qp_event(qp, IBV_EVENT_SQ_DRAINED);
  }
  qp.link.fast = qp.mode.load(std::memory_order_relaxed) == IBV_QPS_RTS &&
                 qp.link.remote != nullptr && qp.out.ring.slots != nullptr &&
                 qp.xrc == XrcRole::kNone && !qp.posts_generally;
}

static int post_generally(Qp& qp, SendLock& lock, const ibv_send_wr& wr) noexcept {
  if (const int error = check_request(qp, wr); error != 0) return error;
  if (const int error = enqueue(qp, wr); error != 0) return error;
  const std::uint32_t mode = qp.mode.load(std::memory_order_relaxed);
  if (mode == IBV_QPS_ERR || mode == IBV_QPS_SQE)
    flush_sends(qp);
  else if (wr.next == nullptr ||
           qp.sq.progress.wait != Wait::kReceive)  // one look for a whole list
    advance(qp, lock);
  return 0;
}

int post_slowly(Qp& qp, SendLock& lock, const ibv_send_wr& wr) noexcept {
  const int error = post_generally(qp, lock, wr);
  // The end of the list too, and what stands before it waits for a look.
  if (error != 0 && qp.queued() != 0) [[unlikely]]
    advance(qp, lock);
  if (error == 0 && qp.is_strict) [[unlikely]] {
    const std::uint32_t mode = qp.mode.load(std::memory_order_relaxed);
    // What fails completes, and so does all that follows it.
    const bool fails = mode == IBV_QPS_ERR || mode == IBV_QPS_SQE;
    note_posted(qp, fails || qp.signal_all || (wr.send_flags & IBV_SEND_SIGNALED) != 0,
                qp.sq_entries);
  }
  return error;
}

void flush_sends(Qp& qp) noexcept {
  if (qp.queued() != 0 && qp.sq.first_error.is_untold()) want_said(qp);
  while (qp.queued() != 0) {
    complete_send(qp, head_of(qp), qp.sq.first_error.take(), false);
    pop(qp);
  }
  forget_asked(qp);
}

void fail_sends(Qp& qp, ibv_wc_status status) noexcept {
  note_failed_send(qp, status);
  // An unreliable one goes on receiving (IBTA 10.3.1.6).
  if (qp.may_lose && is_local_error(status))
    stop_sending(qp);
  else
    enter_error(qp);
  qp.sq.first_error.set(status);
  flush_sends(qp);
}

void drop_sends(Qp& qp) noexcept {
  qp.sq.head = qp.sq.tail;
  qp.note_queued();
  qp.sq.progress.clear();
  forget_asked(qp);
}

void progress_pending(Cq& cq, SendLock::As as) noexcept {
  if (!cq.pending_lock.try_lock()) return;  // another thread is at it
  bool awaits_connection = false;
  Qp** link = &cq.pending_head;
  while (*link != nullptr) {
    Qp& qp = **link;
    bool taken;
    // Who polls a queue of a domain speaks for its queue pairs; of any other, nobody knows.
    SendLock lock(qp, taken,
                  cq.in_domain.load(std::memory_order_relaxed) ? as : SendLock::As::kGuest);
    if (taken) {
      advance(qp, lock);
      if (qp.queued() == 0) {
        *link = qp.next_pending;
        qp.next_pending = nullptr;
        qp.is_pending.store(false, std::memory_order_relaxed);
        cq.pending_count.fetch_sub(1, std::memory_order_relaxed);
        continue;
      }
      awaits_connection = awaits_connection || qp.sq.awaits_connection;
    }
    link = &qp.next_pending;
  }
  cq.pending_lock.unlock();
  // Two service threads are to meet, and who polls may have the core that one of them needs.
  if (awaits_connection && as == SendLock::As::kUser) ::sched_yield();
}

}  // namespace verbatim::shm
