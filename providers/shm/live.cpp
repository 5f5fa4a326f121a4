// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/live.hpp"

#include <sched.h>

#include "providers/shm/node.hpp"
#include "providers/shm/qp.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {

constinit Live live;

namespace {

/// The longest that anybody waits for a peer that is in the middle of a copy. A chunk takes well
/// under a millisecond; more means that the peer is stopped.
constexpr std::uint64_t kQuietBoundNs = 2'000'000'000;

/// The record of the queue pair that may be sending to `qp`, with the process that owns it.
const QpRecord* sender_of(Qp& qp, const Peer*& owner) noexcept {
  if (qp.watched == nullptr) {
    Peer* peer = Node::get().find_peer(qp.own->dest_qpn);
    if (peer == nullptr) return nullptr;
    const std::uint32_t index = Node::index_in(*peer, qp.own->dest_qpn);
    if (index >= peer->segment.qp_capacity()) return nullptr;
    qp.watched = &peer->segment.qps()[index];
    qp.watched_peer = peer;
  }
  owner = qp.watched_peer;
  return qp.watched;
}

}  // namespace

void enlist(Qp& qp) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  live.qps[qp.index] = &qp;
  qp.next_live = live.first_qp;
  qp.prev_live = nullptr;
  if (live.first_qp != nullptr) live.first_qp->prev_live = &qp;
  live.first_qp = &qp;
}

void delist(Qp& qp) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  live.qps[qp.index] = nullptr;
  if (qp.next_live != nullptr) qp.next_live->prev_live = qp.prev_live;
  if (qp.prev_live != nullptr)
    qp.prev_live->next_live = qp.next_live;
  else
    live.first_qp = qp.next_live;
}

bool await_quiet(const std::atomic<std::uint64_t>& active, const Peer* owner,
                 std::uint64_t deadline) noexcept {
  const std::uint64_t seen = active.load(std::memory_order_seq_cst);
  if ((seen & 1) == 0) return true;
  for (std::uint32_t spins = 1; active.load(std::memory_order_acquire) == seen; ++spins) {
    if (owner != nullptr && !owner->alive.load(std::memory_order_acquire)) return true;
    if (spins % 512 == 0) {
      ::sched_yield();
      if (now_ns() > deadline) return false;
    }
    cpu_pause();
  }
  return true;
}

bool await_peer_of(Qp& qp) noexcept {
  const Peer* owner = nullptr;
  const QpRecord* sender = sender_of(qp, owner);
  // Its own peer (a QP connected to itself): whoever holds the send lock is a thread of the
  // caller's.
  if (sender == nullptr || qp.watched_peer->self) {
    if (sender == nullptr || qp.own->dest_qpn == qp.own->qpn) return true;
  }
  return await_quiet(sender->active, owner, now_ns() + kQuietBoundNs);
}

bool await_all_peers() noexcept {
  LockGuard<Mutex> guard(live.mutex);
  bool quiet = await_quiet(live.service_active, nullptr, now_ns() + kQuietBoundNs);
  for (Qp* qp = live.first_qp; qp != nullptr; qp = qp->next_live) {
    if (qp->own->accepts.load(std::memory_order_relaxed) == 0) continue;
    if (!await_peer_of(*qp)) quiet = false;
  }
  return quiet;
}

}  // namespace verbatim::shm
