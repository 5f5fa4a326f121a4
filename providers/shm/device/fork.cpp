// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/device/fork.hpp"

#include <pthread.h>

#include <new>

#include "providers/shm/control/xrc_target.hpp"
#include "providers/shm/device/inherited.hpp"
#include "providers/shm/endpoints/endpoint.hpp"
#include "providers/shm/memory/region_table.hpp"
#include "providers/shm/poll/completion_counters.hpp"
#include "providers/shm/queues/comp_channel.hpp"
#include "providers/shm/queues/failure_log.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/qp.hpp"
#include "providers/shm/queues/shared_receive.hpp"
#include "providers/shm/queues/ud_role.hpp"
#include "providers/shm/transfer/request_service.hpp"
#include "providers/shm/windows/windows.hpp"
#include "runtime/memory/arena.hpp"
#include "runtime/verbs/event_acks.hpp"

namespace verbatim::shm {
namespace {

constinit bool prepared = false;  // under live.mutex

/// The endpoints are forgotten, not given back: one of the parent's threads may have been about to
/// change them.
void retire_endpoints(EndpointTable& table) noexcept {
  table.slots = nullptr;
  table.capacity = table.count = 0;
  table.incoming = nullptr;
}

// The locks are made anew: their holders were threads of the parent's.
void retire_qp(Qp& qp) noexcept {
  qp.link.fast = false;
  qp.mode.store(IBV_QPS_RESET, std::memory_order_relaxed);
  qp.plain.state = IBV_QPS_RESET;
  qp.own->accepts.store(0, std::memory_order_relaxed);
  qp.own->active.store(0, std::memory_order_relaxed);
  qp.sq.head = qp.sq.tail;
  qp.note_queued();
  qp.last_endpoint = nullptr;
  qp.sq.progress.clear();
  qp.asking.ended = qp.asking.asked;
  qp.direct.write = {};
  qp.work.next = qp.work.first;
  qp.work.notes = 0;
  qp.is_pending.store(false, std::memory_order_relaxed);
  qp.next_pending = nullptr;
  qp.link.remote = nullptr;
  qp.in.ring = nullptr;
  qp.in.pack.clear();
  if (qp.xrc_end != nullptr) qp.xrc_end->counts_idle_cq = false;  // see forget_targets_of_parent()
  qp.in.remote = nullptr;
  qp.in.session = 0;
  qp.in.hot_index = Responder::kNotHot;
  qp.watch_index = Qp::kNotWatched;
  ::new (&qp.failures.lock) SpinLock;
  qp.failures.is_unsaid = false;
  ::new (&qp.rq.lock) BiasedLock;
  ::new (&qp.rq.domain_lock) BiasedLock;
  ::new (&qp.control) Mutex;
  leave_events_to_parent(qp);
  leave_counters_in_child(qp);
  qp.in.broken = qp.in.lied = qp.in.is_muted = false;
  for (std::uint32_t i = 0; i < qp.in.held_capacity; ++i) qp.in.held[i].index = HeldReceive::kNone;
  qp.in.held_count = 0;
  if (qp.endpoints != nullptr) retire_endpoints(*qp.endpoints);
  live.qps[qp.index] = nullptr;  // the number may be given to one of the child's own
}

void retire_cq(Cq& cq) noexcept {
  ::new (&cq.lock) BiasedLock;
  ::new (&cq.pending_lock) SpinLock;
  ::new (&cq.cursor.lock) BiasedLock;
  leave_events_to_parent(cq);
  put_cursor_out_of_service(cq);
  cq.armed->store(CqRecord::kIdle, std::memory_order_relaxed);
  cq.cursor.at.store(cq.cursor.last.load(std::memory_order_relaxed), std::memory_order_relaxed);
  cq.marks = 0;
  cq.pending_head = nullptr;
  cq.pending_count.store(0, std::memory_order_relaxed);
  cq.hot_count.store(0, std::memory_order_relaxed);
  cq.head.store(cq.tail.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

void retire_in_child() noexcept {
  ::new (&live.mutex) Mutex;
  forget_unsaid_in_child();
  forget_attended();
  live.service_active.store(0, std::memory_order_relaxed);
  next_look_at_held.store(kNoLook, std::memory_order_relaxed);
  live.watched_count = 0;
  live.parked = nullptr;
  live.abandoned.store(nullptr, std::memory_order_relaxed);
  while (live.opened.first != nullptr) {
    put_out_of_service(*live.opened.first);
    live.opened.remove(*live.opened.first);
  }
  for (ShmCompChannel* at = live.comp_channels.first; at != nullptr; at = at->next_live)
    at->part_from_parent();
  for (Qp* qp = live.first_qp; qp != nullptr; qp = qp->next_live) retire_qp(*qp);
  retire_shared_queues_in_child();
  forget_targets_of_parent();
  forget_endpoints_of_parent();
  remake_window_lock();
  region_table.remake_lock();
  for (std::uint32_t i = 0; i < live.cq_end; ++i)
    if (live.cqs[i] != nullptr) retire_cq(*live.cqs[i]);
}

}  // namespace

int prepare_for_forks() noexcept {
  LockGuard<Mutex> guard(live.mutex);
  if (prepared) return 0;
  if (const int error = arena_prepare_for_forks(); error != 0) return error;
  if (const int error = ::pthread_atfork(nullptr, nullptr, retire_in_child); error != 0)
    return error;
  prepared = true;
  return 0;
}

}  // namespace verbatim::shm
