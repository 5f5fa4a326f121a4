// SPDX-License-Identifier: BSD-2-Clause
//
// What a poll found under the CQ's lock and may not settle there.
#include <utility>

#include "providers/shm/fabric/offenders.hpp"
#include "providers/shm/poll/poll_fast.hpp"
#include "providers/shm/queues/failure_log.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/qp_state.hpp"
#include "providers/shm/transfer/request_service.hpp"
#include "providers/shm/transfer/send_queue.hpp"
#include "runtime/base/log.hpp"

namespace verbatim::shm {
namespace {

/// Says of a process once that it broke the rules, and what ends by that.
void say_lie(const Qp& qp) noexcept {
  const Peer* met = qp.met.load(std::memory_order_acquire);
  if (met == nullptr || !offenders.first_word_of(met->pid)) return;
  const int pid = static_cast<int>(met->pid);
  if (qp.in.is_muted)
    log_warn(
        "shm: process %d broke the rules of the shared memory: what one of its queue pairs, and "
        "any other that does so, sent to 0x%06x is lost",
        pid, qp.ep.parent->own->qpn);
  else
    log_warn(
        "shm: process %d broke the rules of the shared memory: QP 0x%06x, and any other "
        "connection that it does so to, ends in the error state",
        pid, qp.own->qpn);
}

struct Break {
  bool is_broken;
  bool ends_alone;  ///< no other queue pair with it
  bool lied;
};

/// Under the lock under which they are written, maybe just now by another thread that polls.
Break take_break(Qp& qp) noexcept {
  LockGuard<BiasedLock> polling(qp.recv_cq->lock);
  return {std::exchange(qp.in.broken, false),
          qp.ep.parent == nullptr || is_xrc_endpoint(qp) || qp.in.is_muted, qp.in.lied};
}

void break_marked_qps(const Cq& cq) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  for (Qp* qp = live.first_qp; qp != nullptr; qp = qp->next_live) {
    if (qp->recv_cq != &cq) continue;
    const Break seen = take_break(*qp);
    if (!seen.is_broken) continue;
    Qp& known = seen.ends_alone ? *qp : *qp->ep.parent;
    SendLock lock(known);
    if (seen.lied) say_lie(*qp);
    enter_error(known);
    flush_sends(known);
  }
}

}  // namespace

void settle_marks(Cq& cq) noexcept {
  std::uint8_t marks;
  {
    LockGuard<BiasedLock> lock(cq.lock);
    marks = cq.marks;
    cq.marks &= Cq::kTurns;
  }
  if ((marks & Cq::kAsked) != 0) serve_requests_by_poll(cq);
  if ((marks & (Cq::kBroken | Cq::kUnsaid)) == 0) return;
  if ((marks & Cq::kBroken) != 0) break_marked_qps(cq);
  say_failures();
}

}  // namespace verbatim::shm
