// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/live.hpp"

#include <sched.h>

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/meet.hpp"
#include "providers/shm/queues/qp.hpp"
#include "runtime/sync/membarrier.hpp"
#include "runtime/sync/prefetch.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {

constinit Live live;
constinit std::atomic<std::uint64_t> next_look_at_held{kNoLook};

namespace {

/// The active word of the queue pair that may be sending to the one watched at `i`; nullptr while
/// its process has not been met, and so cannot have met us.
const std::atomic<std::uint64_t>* active_word(std::uint32_t i) noexcept {
  if (live.active[i] != nullptr) return live.active[i];
  Qp& qp = *live.watched[i];
  const std::uint32_t qpn = load_relaxed(qp.own->dest_qpn);
  // A QP connected to itself: whoever holds its send lock is a thread of the caller's process, and
  // may be the caller.
  if (qpn == qp.own->qpn) return nullptr;
  const Peer* peer = find_connected_peer(qp);
  if (peer == nullptr) return nullptr;
  const std::uint32_t index = Process::index_in(*peer, qpn);
  if (index >= peer->segment.qp_capacity()) return nullptr;
  live.active[i] = &peer->segment.qps()[index].active;
  return live.active[i];
}

/// `active` was seen odd. True once it has changed, or its owner is dead.
bool await_change(const std::atomic<std::uint64_t>& active, std::uint64_t seen, const Peer* owner,
                  std::uint64_t deadline) noexcept {
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

/// As look_at_mark(), once for many.
std::uint64_t look_at(const std::atomic<std::uint64_t>& active, bool& fenced) noexcept {
  const std::uint64_t seen = active.load(std::memory_order_seq_cst);
  if ((seen & QpRecord::kUnfenced) == 0 || fenced) return seen;
  fence_or_outwait_registered_threads();
  fenced = true;
  return active.load(std::memory_order_seq_cst);
}

/// A word that was odd. Its segment stays where it is while its owner is held.
struct Awaited {
  const std::atomic<std::uint64_t>* active;
  std::uint64_t seen;
  Peer* owner;  ///< held
};

/// More than a host has threads that copy at one moment, most of the time.
constexpr std::uint32_t kAwaitedAtOnce = 64;

/// The words that are odd now, as many as fit.
std::uint32_t find_busy(Awaited (&out)[kAwaitedAtOnce], bool& fenced) noexcept {
  constexpr std::uint32_t kAhead = 16;
  std::uint32_t count = 0;
  LockGuard<Mutex> guard(live.mutex);
  for (std::uint32_t i = 0; i < live.watched_count && count < kAwaitedAtOnce; ++i) {
    if (i + kAhead < live.watched_count && live.active[i + kAhead] != nullptr)
      prefetch_to_read(live.active[i + kAhead]);
    const std::atomic<std::uint64_t>* active = active_word(i);
    const std::uint64_t seen = active == nullptr ? 0 : look_at(*active, fenced);
    if ((seen & 1) == 0) continue;
    Peer* owner = live.watched[i]->met.load(std::memory_order_acquire);
    if (owner != nullptr && Process::get().hold_too(*owner)) out[count++] = {active, seen, owner};
  }
  return count;
}

}  // namespace

std::uint64_t look_at_mark(const std::atomic<std::uint64_t>& active) noexcept {
  bool fenced = false;
  return look_at(active, fenced);
}

std::uint32_t next_session() noexcept {
  std::uint32_t session;
  do {
    session = live.sessions.fetch_add(1, std::memory_order_relaxed) + 1;
  } while (session == 0);
  return session;
}

void enlist(Qp& qp) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  enlist_locked(qp);
}

void delist(Qp& qp) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  delist_locked(qp);
}

void enlist_locked(Qp& qp) noexcept {
  live.qps[qp.index] = &qp;
  qp.next_live = live.first_qp;
  qp.prev_live = nullptr;
  if (live.first_qp != nullptr) live.first_qp->prev_live = &qp;
  live.first_qp = &qp;
}

void delist_locked(Qp& qp) noexcept {
  if (live.qps[qp.index] == &qp) live.qps[qp.index] = nullptr;
  if (qp.next_live != nullptr) qp.next_live->prev_live = qp.prev_live;
  if (qp.prev_live != nullptr)
    qp.prev_live->next_live = qp.next_live;
  else
    live.first_qp = qp.next_live;
}

bool await_quiet(const std::atomic<std::uint64_t>& active, const Peer* owner,
                 std::uint64_t deadline) noexcept {
  const std::uint64_t seen = active.load(std::memory_order_seq_cst);
  return (seen & 1) == 0 || await_change(active, seen, owner, deadline);
}

void watch(Qp& qp) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  watch_locked(qp);
}

void unwatch(Qp& qp) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  unwatch_locked(qp);
}

void watch_locked(Qp& qp) noexcept {
  if (qp.watch_index != Qp::kNotWatched) return;
  qp.watch_index = live.watched_count++;
  live.watched[qp.watch_index] = &qp;
  live.active[qp.watch_index] = nullptr;
}

void unwatch_locked(Qp& qp) noexcept {
  const std::uint32_t i = qp.watch_index;
  if (i == Qp::kNotWatched) return;
  const std::uint32_t last = --live.watched_count;
  live.watched[i] = live.watched[last];
  live.active[i] = live.active[last];
  live.watched[i]->watch_index = i;
  qp.watch_index = Qp::kNotWatched;
}

bool await_peer_of(Qp& qp) noexcept {
  const std::atomic<std::uint64_t>* active;
  {
    LockGuard<Mutex> guard(live.mutex);
    active = qp.watch_index == Qp::kNotWatched ? nullptr : active_word(qp.watch_index);
  }
  if (active == nullptr) return true;
  (void)look_at_mark(*active);
  // Only the caller's own thread ends the hold that `active` needs: it orders the QP's control
  // verbs.
  return await_quiet(*active, qp.met.load(std::memory_order_acquire), now_ns() + kQuietBoundNs);
}

bool await_all_peers() noexcept {
  std::uint64_t deadline = 0;  // one for all who are waited for
  const auto until = [&deadline] {
    if (deadline == 0) deadline = now_ns() + kQuietBoundNs;
    return deadline;
  };
  bool quiet = true;
  if ((live.service_active.load(std::memory_order_seq_cst) & 1) != 0)
    quiet = await_quiet(live.service_active, nullptr, until());
  // Who is odd only later has seen that the key is gone. So one look is enough, and nobody is kept
  // from anything while we wait; but for more than fit, who are looked for again.
  Awaited busy[kAwaitedAtOnce];
  std::uint32_t count;
  bool fenced = false;
  do {
    count = find_busy(busy, fenced);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!await_change(*busy[i].active, busy[i].seen, busy[i].owner, until())) quiet = false;
      Process::get().release_peer(*busy[i].owner);
    }
  } while (count == kAwaitedAtOnce && quiet);
  return quiet;
}

}  // namespace verbatim::shm
