// SPDX-License-Identifier: BSD-2-Clause
//
// Every queue pair and completion queue of this process, for those who come to them from the side:
// the service thread, and deregistration.
//
// The mutex is the outermost lock (live < send lock < CQ lock). Whoever holds it may use any object
// it finds here; destroy takes objects out under it first.
#pragma once

#include <atomic>
#include <cstdint>

#include "providers/shm/queues/live_list.hpp"
#include "providers/shm/wire/layout.hpp"
#include "runtime/sync/mutex.hpp"

namespace verbatim::shm {

struct Context;
struct Peer;
struct Qp;
struct Cq;
class ShmCompChannel;

/// The longest that anybody waits for a peer that is in the middle of a copy. A chunk takes well
/// under a millisecond; more means that the peer is stopped.
inline constexpr std::uint64_t kQuietBoundNs = 2'000'000'000;

/// No event is held back.
inline constexpr std::uint64_t kNoLook = ~std::uint64_t{0};

/// Begins as zeros, all of it: then a program's file does not hold its 1.6 MB.
struct Live {
  Mutex mutex;
  Qp* first_qp = nullptr;
  Qp* parked = nullptr;  ///< destroyed, but a peer has yet to take what they sent
  /// Endpoints whose destinations are gone: to be given back, with their numbers, their rings and
  /// the mappings of the dead. Who finds one has a send lock, under which the mutex cannot be had.
  std::atomic<Qp*> abandoned{nullptr};
  std::uint32_t contexts = 0;
  LiveList<Context> opened;  ///< of those that this process opened: not a parent's
  LiveList<ShmCompChannel> comp_channels;
  Qp* qps[kMaxQps] = {};  // zero pages until touched
  Cq* cqs[kMaxCqs] = {};
  std::uint32_t cq_end = 0;  ///< numbers below it may be in use
  /// QPs that accept from a peer, with that peer's active word (nullptr until the peer was met):
  /// two dense arrays, since each deregistration walks them.
  std::uint32_t watched_count = 0;
  Qp* watched[kMaxQps] = {};
  const std::atomic<std::uint64_t>* active[kMaxQps] = {};
  /// Odd while the service thread copies from or to registered memory on a peer's behalf.
  std::atomic<std::uint64_t> service_active{0};
  /// Pieces that streams have put into stream rings: has anything moved?
  std::atomic<std::uint64_t> streamed{0};
  /// now_ns() at which the first flush that waits for its sender no longer does; 0: none waits.
  std::atomic<std::uint64_t> next_flush{0};
  std::atomic<std::uint32_t> sessions{0};  ///< last session number given out
};

extern Live live;
/// now_ns() of the service thread's next look at events that are held back (moderation.hpp).
extern std::atomic<std::uint64_t> next_look_at_held;

/// A number for the time that a queue pair accepts messages: never 0, not soon used again.
std::uint32_t next_session() noexcept;

void enlist(Qp& qp) noexcept;
void delist(Qp& qp) noexcept;
/// The same when the caller holds live.mutex.
void enlist_locked(Qp& qp) noexcept;
void delist_locked(Qp& qp) noexcept;

/// From before a QP accepts until after it is reset, its sender is watched.
void watch(Qp& qp) noexcept;
void unwatch(Qp& qp) noexcept;
/// The same when the caller holds live.mutex.
void watch_locked(Qp& qp) noexcept;
void unwatch_locked(Qp& qp) noexcept;

/// A peer's active word. A mark that comes without a fence may still be on its way: after this it is
/// seen, or its owner sees what the caller has taken away before.
std::uint64_t look_at_mark(const std::atomic<std::uint64_t>& active) noexcept;
/// Waits until whoever held `active` when we came has let go (or died, or `deadline` passed:
/// false).
bool await_quiet(const std::atomic<std::uint64_t>& active, const Peer* owner,
                 std::uint64_t deadline) noexcept;

/// No peer touches our memory on behalf of what `qp` accepted before it stopped accepting. False:
/// not even after the bound (a peer was stopped in the middle of a copy).
bool await_peer_of(Qp& qp) noexcept;
/// The same for all queue pairs and the service thread.
bool await_all_peers() noexcept;

}  // namespace verbatim::shm
