// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/qp_life.hpp"

#include <cstdlib>

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/attach.hpp"
#include "providers/shm/queues/failure_log.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/qp_kind.hpp"
#include "providers/shm/queues/shared_receive.hpp"
#include "providers/shm/queues/ud_role.hpp"
#include "runtime/base/make_nothrow.hpp"

namespace verbatim::shm {

void reset_record(Qp& qp) noexcept {
  QpRecord& record = *qp.own;
  record.accepts.store(0, std::memory_order_relaxed);
  record.attention.store(kDoorbell, std::memory_order_relaxed);
  // A peer that has yet to take our last messages finds them by this number.
  if (!qp.lingering) store_relaxed(record.dest_qpn, 0);
  record.consumed.store(0, std::memory_order_relaxed);
  record.lines_taken.store(0, std::memory_order_relaxed);
  store_relaxed(record.refused, 0u);
  record.stream_consumed.store(0, std::memory_order_relaxed);
  record.served.store(0, std::memory_order_relaxed);
  store_relaxed(record.received_bytes, 0);
}

/// The requests that ibv_wr_* build.
static void free_work(Qp& qp) noexcept {
  if (qp.work.first == nullptr) return;
  qp.memory.give(qp.work.first - 1);
  qp.work = {};
}

void free_queues(Qp& qp) noexcept {
  qp.sq.store.free(qp.memory);
  free_work(qp);
  qp.rq.store.free(qp.memory);
  qp.rq.give_up(qp.own);
  if (qp.datagrams != nullptr && qp.datagrams->inbox != nullptr)
    qp.datagrams->inbox->store.free(qp.datagrams->inbox->memory);
}

void free_qp(Qp& qp) noexcept {
  forget_failures(qp);
  free_queues(qp);
  std::free(qp.in.held);
  std::free(qp.out.ring.old);
  if (qp.endpoints != nullptr) std::free(qp.endpoints->slots);
  if (qp.datagrams != nullptr) {
    if (qp.datagrams->inbox != nullptr) free_srq(*qp.datagrams->inbox);
    std::free(qp.datagrams->members.list);
    destroy_nothrow(qp.datagrams);
  } else {
    destroy_nothrow(qp.endpoints);
  }
  destroy_nothrow(qp.xrc_end);
  destroy_nothrow(&qp);
}

namespace {

/// Gives back what peers see of a QP, and the QP.
void retire_qp(Qp& qp) noexcept {
  if (qp.kind != nullptr && qp.kind->retire != nullptr) qp.kind->retire(qp);
  detach(qp);
  __atomic_store_n(&qp.own->qpn, 0u, __ATOMIC_RELEASE);
  if (Process::get().segment().holds(qp.own)) Process::get().give_qpn(qp.index);
  free_qp(qp);
}

}  // namespace

void park(Qp& qp) noexcept {
  qp.lingering = unread(qp);
  if (!qp.lingering) {
    retire_qp(qp);
    return;
  }
  qp.next_live = live.parked;
  live.parked = &qp;
}

/// live.mutex is held.
static void park_abandoned() noexcept {
  Qp* endpoint = live.abandoned.exchange(nullptr, std::memory_order_acquire);
  while (endpoint != nullptr) {
    Qp* const next = endpoint->next_live;
    park(*endpoint);
    endpoint = next;
  }
}

void retire_parked() noexcept {
  LockGuard<Mutex> guard(live.mutex);
  park_abandoned();
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
  park_abandoned();
  while (live.parked != nullptr) {
    Qp& qp = *live.parked;
    live.parked = qp.next_live;
    if (Peer* peer = qp.met.load(std::memory_order_relaxed); peer != nullptr)
      Process::get().release_peer(*peer);
    free_qp(qp);
  }
}

}  // namespace verbatim::shm
