// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/send_queue.hpp"

#include <cerrno>
#include <cstdlib>

#include "providers/shm/datagram.hpp"
#include "providers/shm/fabric/node.hpp"
#include "providers/shm/fork.hpp"
#include "providers/shm/live.hpp"
#include "providers/shm/null_memory.hpp"
#include "providers/shm/send_fast.hpp"
#include "providers/shm/service_requests.hpp"
#include "providers/shm/windows.hpp"
#include "runtime/base/log.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {
namespace {

constexpr std::uint64_t kForEver = ~std::uint64_t{0};

bool is_atomic(unsigned opcode) noexcept {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

bool knows(unsigned opcode) noexcept {
  switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_LOCAL_INV:
    case IBV_WR_BIND_MW:
    case IBV_WR_ATOMIC_WRITE:
    case IBV_WR_FLUSH:
      return true;
    default:
      return false;
  }
}

ibv_wc_opcode completed_as(unsigned opcode) noexcept {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    case IBV_WR_LOCAL_INV:
      return IBV_WC_LOCAL_INV;
    case IBV_WR_BIND_MW:
      return IBV_WC_BIND_MW;
    case IBV_WR_ATOMIC_WRITE:
      return IBV_WC_ATOMIC_WRITE;
    case IBV_WR_FLUSH:
      return IBV_WC_FLUSH;
    default:
      return IBV_WC_SEND;
  }
}

/// IBTA table 45: what an unreliable connection has no answers for.
bool needs_reliability(unsigned opcode) noexcept {
  return opcode == IBV_WR_RDMA_READ || is_atomic(opcode) || opcode == IBV_WR_ATOMIC_WRITE ||
         opcode == IBV_WR_FLUSH;
}

/// Nothing of it concerns the peer.
bool is_at_home(unsigned opcode) noexcept {
  return opcode == IBV_WR_BIND_MW || opcode == IBV_WR_LOCAL_INV;
}

/// What only some operations demand of a request. FLUSH stands in wr.atomic: compare_add is the
/// length, swap is type | level << 8; ibv_wr_flush puts it there.
int check_form(const ibv_send_wr& wr) noexcept {
  switch (wr.opcode) {
    case IBV_WR_BIND_MW:
      return check_bind(wr);
    case IBV_WR_LOCAL_INV:
      return wr.num_sge != 0 ? EINVAL : 0;
    case IBV_WR_ATOMIC_WRITE: {
      std::uint64_t bytes = 0;
      for (int i = 0; i < wr.num_sge; ++i) bytes += wr.sg_list[i].length;
      return bytes != 8 ? EINVAL : 0;
    }
    case IBV_WR_FLUSH: {
      constexpr std::uint64_t kTypes = IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT;
      const std::uint64_t type = wr.wr.atomic.swap & 0xff;
      const std::uint64_t level = wr.wr.atomic.swap >> 8;
      return wr.num_sge != 0 || type == 0 || (type & ~kTypes) != 0 || level > IBV_FLUSH_MR ? EINVAL
                                                                                           : 0;
    }
    default:
      return 0;
  }
}

}  // namespace

// Everything that a HCA's driver would refuse before the hardware sees it.
int check_request(const Qp& qp, const ibv_send_wr& wr) noexcept {
  const std::uint32_t mode = qp.mode.load(std::memory_order_relaxed);
  if (mode < IBV_QPS_RTS) {
    tell_if_inherited();
    return EINVAL;
  }
  if (!knows(wr.opcode)) return EINVAL;
  if (qp.plain.qp_type == IBV_QPT_UC && needs_reliability(wr.opcode)) return EINVAL;
  if (wr.num_sge < 0 || wr.num_sge > qp.max_send_sge) return EINVAL;
  if (wr.num_sge != 0 && wr.sg_list == nullptr) return EINVAL;
  const bool reads = wr.opcode == IBV_WR_RDMA_READ || is_atomic(wr.opcode);
  if (reads && qp.attributes.max_rd_atomic == 0 && mode != IBV_QPS_ERR) return EINVAL;
  if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
    if (reads) return EINVAL;
    std::uint64_t bytes = 0;
    for (int i = 0; i < wr.num_sge; ++i) bytes += wr.sg_list[i].length;
    if (bytes > qp.max_inline) return EINVAL;
  }
  if (const int error = check_form(wr); error != 0) return error;
  if (qp.sq_next - qp.sq_polled.load(std::memory_order_acquire) >= qp.sq_entries) return ENOMEM;
  return 0;
}

// It comes with its first use: most QPs never wait.
bool make_queue(Qp& qp) noexcept {
  if (qp.queue == nullptr)
    qp.queue = static_cast<PendingSend*>(std::calloc(qp.sq_entries, sizeof(PendingSend)));
  if (qp.queue_sges == nullptr)
    qp.queue_sges = static_cast<ibv_sge*>(
        std::calloc(std::size_t{qp.sq_entries} * qp.max_send_sge, sizeof(ibv_sge)));
  return qp.queue != nullptr && qp.queue_sges != nullptr;
}

bool make_inline_store(Qp& qp) noexcept {
  if (qp.queue_inline == nullptr)
    qp.queue_inline =
        static_cast<unsigned char*>(std::malloc(std::size_t{qp.sq_entries} * kMaxInline));
  return qp.queue_inline != nullptr;
}

namespace {

int enqueue(Qp& qp, const ibv_send_wr& wr) noexcept {
  if (!make_queue(qp)) return ENOMEM;
  const std::uint32_t at = qp.queue_tail % qp.sq_entries;
  PendingSend& send = qp.queue[at];
  ibv_sge* sges = qp.queue_sges + std::size_t{at} * qp.max_send_sge;
  send = {};
  send.wr_id = wr.wr_id;
  send.opcode = static_cast<std::uint16_t>(wr.opcode);
  send.flags = static_cast<std::uint16_t>(wr.send_flags);
  send.immediate = wr.imm_data;
  send.num_sge = static_cast<std::uint16_t>(wr.num_sge);
  for (int i = 0; i < wr.num_sge; ++i) {
    sges[i] = wr.sg_list[i];
    send.length += sges[i].length;
  }
  if (qp.datagrams != nullptr) {
    address_datagram(qp, wr, send);
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
  if ((wr.send_flags & IBV_SEND_INLINE) != 0 && send.length != 0) {
    if (!make_inline_store(qp)) return ENOMEM;
    unsigned char* bytes = qp.queue_inline + std::size_t{at} * kMaxInline;
    std::uint64_t filled = 0;
    for (int i = 0; i < wr.num_sge; ++i) {
      copy_inline(bytes + filled, reinterpret_cast<const unsigned char*>(wr.sg_list[i].addr),
                  wr.sg_list[i].length);
      filled += wr.sg_list[i].length;
    }
    sges[0] = {reinterpret_cast<std::uint64_t>(bytes), static_cast<std::uint32_t>(filled), 0};
    send.num_sge = 1;
    send.is_inline = true;
  }
  send.sq_index = qp.sq_next++;
  ++qp.queue_tail;
  return 0;
}

/// `by_domain`: the send lock is held by the thread of the queue pair's domain.
void complete_send(Qp& qp, const PendingSend& send, ibv_wc_status status, bool by_domain) noexcept {
  if (status == IBV_WC_SUCCESS && (send.flags & IBV_SEND_SIGNALED) == 0 && !qp.signal_all) return;
  const bool returns_bytes = send.opcode == IBV_WR_RDMA_READ || is_atomic(send.opcode);
  const auto bytes = static_cast<std::uint32_t>(is_atomic(send.opcode) ? 8 : send.length);
  DomainGuard guard(qp.send_cq->lock,
                    by_domain && qp.send_cq->in_domain.load(std::memory_order_relaxed));
  push_locked(*qp.send_cq, {send.wr_id, &qp, returns_bytes ? bytes : 0, send.sq_index,
                            static_cast<std::uint16_t>(completed_as(send.opcode)),
                            static_cast<std::uint8_t>(status), true, 0});
}

PendingSend& head_of(Qp& qp) noexcept { return qp.queue[qp.queue_head % qp.sq_entries]; }

void pop(Qp& qp) noexcept {
  ++qp.queue_head;
  qp.progress = {};
}

Step send_and_invalidate(Qp& qp, SendLock& lock, const PendingSend& send,
                         const LocalRange* local) noexcept {
  const bool begun = qp.progress.streaming || qp.progress.placing;
  if (!begun) {
    if (!may_invalidate(qp, send.immediate))
      return Step::fails(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    if (remembers_enough(qp)) {
      // The peer must take one of those messages; its service thread does when nobody polls. More
      // than once, since it leaves a message for which it found us copying.
      constexpr std::uint64_t kAskAgainNs = 100'000;
      const std::uint64_t now = now_ns();
      if (now - qp.progress.stalled_since > kAskAgainNs) {
        qp.progress.stalled_since = now;
        wake_service_of_peer(qp);
      }
      return Step::waits(Wait::kStream);
    }
  }
  const Step step = send_message(qp, lock, send, local);
  if (step.kind == Step::Kind::kDone) note_invalidated(qp, send.immediate);
  return step;
}

bool is_dead(const Qp& qp) noexcept {
  return qp.peer != nullptr && !qp.peer->alive.load(std::memory_order_acquire);
}

/// One step for the request at the head.
Step step(Qp& qp, SendLock& lock, const PendingSend& send) noexcept {
  if (qp.mode.load(std::memory_order_relaxed) == IBV_QPS_SQD) return Step::waits(Wait::kNothing);
  if (is_at_home(send.opcode)) return do_window(qp, send);
  if (send.length > kMaxMessage) return Step::fails(IBV_WC_LOC_LEN_ERR);
  const bool reads = send.opcode == IBV_WR_RDMA_READ || is_atomic(send.opcode);
  if (is_atomic(send.opcode) && send.length < 8) return Step::fails(IBV_WC_LOC_LEN_ERR);
  LocalRange local[kMaxSge];
  const ibv_sge* sges =
      qp.queue_sges + std::size_t{qp.queue_head % qp.sq_entries} * qp.max_send_sge;
  if (!resolve_local(qp, send, sges, reads ? IBV_ACCESS_LOCAL_WRITE : 0, local))
    return Step::fails(IBV_WC_LOC_PROT_ERR);
  if (qp.datagrams != nullptr) return send_datagram(qp, lock, send, local);
  if (const Wait wait = attach(qp); wait != Wait::kNothing) {
    // The receiver found out that the memory of a message under way is gone, or of one that had
    // arrived: nothing after it can be delivered.
    if (qp.remote != nullptr && peek(qp.remote->refused) != 0)
      return Step::fails(IBV_WC_REM_OP_ERR);
    return Step::waits(wait);
  }
  // What the dead have shown can still be copied from and to. The service thread ends that too, but
  // may wait long for a lock that is taken again and again.
  if (is_dead(qp)) return Step::fails(IBV_WC_RETRY_EXC_ERR);
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

/// A wire's timeout says nothing of how long a living process may wait for a core: its service
/// thread gets at least so long.
constexpr std::uint64_t kServicePatienceNs = 4'000'000'000;

/// When a wait becomes an error; the rules of IBTA 9.7.6.1.3 (timeouts) and 9.7.5.2.8 (RNR).
std::uint64_t deadline_of(const Qp& qp, Wait wait) noexcept {
  if (wait == Wait::kStream) return kForEver;
  if (wait == Wait::kQuiet) return now_ns() + kQuietBoundNs;
  if (wait != Wait::kReceive) {
    if (qp.retry_ns == kForEver) return kForEver;
    const bool of_service = wait == Wait::kArena || wait == Wait::kService;
    return now_ns() +
           (of_service && qp.retry_ns < kServicePatienceNs ? kServicePatienceNs : qp.retry_ns);
  }
  if (qp.rnr_retry == 7) return kForEver;
  // IBTA table 45: the 32 codes of the RNR timer in units of 10 us.
  static constexpr std::uint32_t kTens[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                              16,    24,   32,   48,    64,    96,    128,   192,
                                              256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                              4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};
  const std::uint32_t code = peek(qp.remote->min_rnr_timer) & 31u;
  return now_ns() + std::uint64_t{qp.rnr_retry} * kTens[code] * 10'000;
}

ibv_wc_status status_of_timeout(Wait wait) noexcept {
  if (wait == Wait::kQuiet) return IBV_WC_MW_BIND_ERR;
  return wait == Wait::kReceive ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_RETRY_EXC_ERR;
}

/// The head cannot move: decides whether it may go on waiting.
Step judge_wait(Qp& qp, Wait wait) noexcept {
  Progress& progress = qp.progress;
  if (wait == Wait::kNothing) return Step::waits(wait);   // SQD: until the state changes
  if (qp.datagrams != nullptr) return Step::waits(wait);  // it has judged that itself
  // A dead process answers nobody: no timeout to sit out, also when timeout 0 says for ever. What
  // it had done before it died, it has done.
  if (is_dead(qp)) return Step::fails(IBV_WC_RETRY_EXC_ERR);
  if (progress.wait != wait) {
    progress.wait = wait;
    progress.deadline = deadline_of(qp, wait);
  }
  if (progress.deadline == kForEver) return Step::waits(wait);
  // The clock of the wire starts when the processes have met, or when nobody is there to be met.
  // One reading for all that follows: we may not run for longer than the wire's time between any
  // two.
  const std::uint64_t now = now_ns();
  if (wait != Wait::kPeer) {
    progress.meeting_until = 0;
  } else if (qp.peer == nullptr && Node::get().is_meeting(qp.own->dest_qpn)) {
    if (progress.meeting_until == 0) progress.meeting_until = now + kServicePatienceNs;
    if (now < progress.meeting_until) progress.deadline = now + qp.retry_ns;
  } else if (progress.meeting_until != 0 &&
             (qp.peer != nullptr || Node::get().find_peer(qp.own->dest_qpn) != nullptr)) {
    // Met, maybe since the step looked: the next one attaches, and has the wire's time for it.
    progress.meeting_until = 0;
    progress.deadline = now + qp.retry_ns;
  }
  if (now >= progress.deadline) return Step::fails(status_of_timeout(wait));
  return Step::waits(wait);
}

bool is_local(ibv_wc_status status) noexcept {
  return status == IBV_WC_LOC_PROT_ERR || status == IBV_WC_LOC_LEN_ERR ||
         status == IBV_WC_LOC_QP_OP_ERR || status == IBV_WC_MW_BIND_ERR;
}

/// On an unreliable connection a request that cannot be delivered is lost, and done (IBTA 9.8.2):
/// only what is wrong on our own side is an error. But for processes that are about to meet.
Step lose(Qp& qp, const Step& result) noexcept {
  switch (result.kind) {
    case Step::Kind::kFail:
      if (is_local(result.status)) return result;
      if (result.tell == kToldInReceive) tell_fault(qp, result.tell);
      return Step::done();
    case Step::Kind::kWait: {
      if (qp.datagrams != nullptr) return result;
      if (result.wait == Wait::kReceive) return Step::done();
      if (result.wait != Wait::kPeer) return result;
      const std::uint32_t dest_qpn = qp.own->dest_qpn;
      if (qp.peer != nullptr) return Step::done();
      // Met just now counts as meeting: the next step attaches.
      if (!Node::get().is_meeting(dest_qpn) && Node::get().find_peer(dest_qpn) == nullptr)
        return Step::done();
      const std::uint64_t now = now_ns();
      std::uint64_t& until = qp.progress.meeting_until;
      if (until == 0) until = now + kServicePatienceNs;
      return now < until ? result : Step::done();
    }
    default:
      return result;
  }
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
  Node::get().want_tick(true);
}

}  // namespace

bool resolve_local(const Qp& qp, const PendingSend& send, const ibv_sge* sges, std::uint32_t need,
                   LocalRange* out) noexcept {
  for (std::uint32_t i = 0; i < send.num_sge; ++i) {
    out[i].length = sges[i].length;
    out[i].at = reinterpret_cast<unsigned char*>(sges[i].addr);
    if (send.is_inline || sges[i].length == 0) continue;
    out[i].at = local_bytes(qp, sges[i], need);
    if (out[i].at == nullptr &&
        !names_null_memory(qp.own_regions, qp.own_region_capacity, qp.pd_number, sges[i].lkey))
      return false;
  }
  return true;
}

void advance(Qp& qp, SendLock& lock) noexcept {
  while (qp.queued() != 0) {
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
      if (result.tell != 0) tell_fault(qp, result.tell);
      fail_sends(qp, result.status);
      if (is_dead(qp)) raise_qp_event(qp, IBV_EVENT_QP_FATAL);  // as service_hooks.cpp would have
      return;
    }
    if (result.kind == Step::Kind::kWait) {
      qp.fast = false;
      mark_pending(qp);
      return;
    }
    complete_send(qp, send, IBV_WC_SUCCESS, lock.by_domain());
    pop(qp);
  }
  qp.fast = qp.mode.load(std::memory_order_relaxed) == IBV_QPS_RTS && qp.remote != nullptr &&
            qp.ring != nullptr;
}

int post_slowly(Qp& qp, SendLock& lock, const ibv_send_wr& wr) noexcept {
  if (qp.datagrams != nullptr) {
    if (const int error = check_datagram(qp, wr); error != 0) return error;
    if (send_datagram_now(qp, wr)) return 0;
  }
  if (const int error = check_request(qp, wr); error != 0) return error;
  if (const int error = enqueue(qp, wr); error != 0) return error;
  const std::uint32_t mode = qp.mode.load(std::memory_order_relaxed);
  if (mode == IBV_QPS_ERR || mode == IBV_QPS_SQE)
    flush_sends(qp);
  else
    advance(qp, lock);
  return 0;
}

void flush_sends(Qp& qp) noexcept {
  while (qp.queued() != 0) {
    complete_send(qp, head_of(qp), qp.first_flush, false);
    qp.first_flush = IBV_WC_WR_FLUSH_ERR;
    pop(qp);
  }
}

void fail_sends(Qp& qp, ibv_wc_status status) noexcept {
  // An unreliable one goes on receiving (IBTA 10.3.1.6).
  if (qp.may_lose && is_local(status))
    stop_sending(qp);
  else
    enter_error(qp);
  qp.first_flush = status;
  flush_sends(qp);
}

void drop_sends(Qp& qp) noexcept {
  qp.queue_head = qp.queue_tail;
  qp.progress = {};
}

void progress_pending(Cq& cq, SendLock::As as) noexcept {
  if (!cq.pending_lock.try_lock()) return;  // another thread is at it
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
    }
    link = &qp.next_pending;
  }
  cq.pending_lock.unlock();
}

}  // namespace verbatim::shm
