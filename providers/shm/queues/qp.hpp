// SPDX-License-Identifier: BSD-2-Clause
//
// A queue pair: our private half. What the peer sees of it is its QpRecord. It is made of roles, each a
// struct of its own (*_role.hpp): the connection, the requester and the send queue, the responder,
// the receive queue and the role of an endpoint are of all; the others of UD, of endpoints and of
// XRC only of those that need them.
//
// Three locks, taken in this order: send lock (SendLock, the record's active word) < the CQ's lock;
// receive lock (posting receives) on its own. The roles below are grouped by the lock that guards
// them, each group on its own cache lines.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "providers/shm/fabric/peer.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/connection_role.hpp"
#include "providers/shm/queues/cq.hpp"
#include "providers/shm/queues/endpoint_role.hpp"
#include "providers/shm/queues/failure_record.hpp"
#include "providers/shm/queues/receive_queue_role.hpp"
#include "providers/shm/queues/request_progress.hpp"
#include "providers/shm/queues/requester_role.hpp"
#include "providers/shm/queues/responder_role.hpp"
#include "providers/shm/queues/send_queue_role.hpp"
#include "providers/shm/queues/work_batch.hpp"
#include "providers/shm/queues/xrc_role.hpp"
#include "providers/shm/wire/layout.hpp"
#include "runtime/sync/biased_lock.hpp"
#include "runtime/sync/mutex.hpp"
#include "runtime/sync/pause.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim::shm {

inline constexpr std::uint32_t kMaxWr = 32768;
inline constexpr std::uint64_t kMaxMessage = std::uint64_t{1} << 30;
inline constexpr std::uint32_t kMaxRdAtomic = 16;
/// A request to place bytes in a posted receive moves at most so much.
inline constexpr std::uint64_t kBounceBytes = 64u << 10;

struct Mw;
struct Datagrams;
struct QpKind;

struct Qp : verbatim::Qp {
  Qp() noexcept { received = &in.head; }

  // --- constant after create, but for what says otherwise; on the first line what is looked at for
  // each message
  alignas(kCacheLine) QpRecord* own = nullptr;
  Cq* send_cq = nullptr;
  Qp* last_endpoint = nullptr;  ///< of its endpoints, the one used last; under the send lock
  Srq* srq = nullptr;           ///< where its receives come from, else from rq
  const RegionRecord* own_regions = nullptr;
  std::uint32_t own_region_capacity = 0;
  std::uint32_t pd_number = 0;
  /// The state that data paths test; mirrors plain.state without its type. Control.
  std::atomic<std::uint32_t> mode{IBV_QPS_RESET};
  std::uint32_t sq_entries = 0;
  std::uint16_t max_inline = 0;
  /// As queued() says, here where a datagram's post looks anyway. Under the send lock.
  bool has_queued = false;
  bool posts_generally = false;  ///< every post takes the general path: strict, or counted
  /// Why a post leaves the shortest way at once: kInDomain, kToShared. Read without a lock, since
  /// every way is right; only not as fast.
  std::atomic<std::uint8_t> slow_path{0};
  /// Bytes that each receive has in front of the message: the routing header's of UD.
  std::uint8_t headroom = 0;
  bool signal_all = false;
  bool in_domain = false;  ///< of a thread domain, which says so when it locks
  EndpointRole ep{};
  Cq* recv_cq = nullptr;
  const QpKind* kind = nullptr;        ///< what it does in its own way; of connected ones nothing
  EndpointTable* endpoints = nullptr;  ///< of one with endpoints
  Datagrams* datagrams = nullptr;      ///< of a UD queue pair
  XrcEnd* xrc_end = nullptr;           ///< of an XRC target, and of a handle on one
  std::uint32_t index = 0;             ///< in the segment's QP table
  std::uint16_t max_send_sge = 0;
  XrcRole xrc = XrcRole::kNone;
  bool is_strict = false;  ///< the general path warns
  /// What it sends may be lost without a word (UC, UD).
  bool may_lose = false;

  // --- under the send lock
  alignas(kCacheLine) QpConnection link{};
  DirectTargets direct{};
  WorkBatch work{};
  EndedKey ended[kEndedKeys] = {};  ///< until the peer has taken the messages
  /// How many messages the application has received by it, or by the one whose endpoint it is.
  const std::atomic<std::uint64_t>* received = nullptr;

  alignas(kCacheLine) SharedCredits shared{};
  alignas(kCacheLine) Requester out{};
  SendQueue sq{};
  Stream stream{};
  Asking asking{};

  /// In a CQ's list of QPs with pending sends.
  alignas(kCacheLine) Qp* next_pending = nullptr;
  std::atomic<bool> is_pending{false};

  // --- under the receive CQ's lock
  alignas(kCacheLine) Responder in{};

  // --- under the receive lock
  alignas(kCacheLine) ReceiveQueue rq{};

  // --- control
  Mw* windows = nullptr;   ///< of type 2, bound on it; guarded by their lock
  Mutex control;           ///< orders modify_qp calls; outermost
  bool lingering = false;  ///< reset or destroyed before the peer took all that we had sent
  /// The process that has the other half, held from when find_connected_peer() found it until
  /// detach(). link.peer and in.peer are it too, under their locks.
  std::atomic<Peer*> met{nullptr};
  /// Its place among those whose senders are watched, under live.mutex.
  std::uint32_t watch_index = kNotWatched;
  QueueMemory memory;  ///< whose the queues are, as far as no peer sees them
  Qp* next_live = nullptr;
  Qp* prev_live = nullptr;
  FailureRecord failures;

  static constexpr std::uint8_t kInDomain = 1;  ///< as in_domain
  static constexpr std::uint8_t kToShared = 2;  ///< its SENDs go to receives that are shared
  static constexpr std::uint32_t kNotWatched = ~0u;
  static Qp& from(ibv_qp* qp) noexcept { return *reinterpret_cast<Qp*>(qp); }
  static Qp& from(ibv_qp_ex* qp) noexcept { return *reinterpret_cast<Qp*>(qp); }

  void set_slow_path(std::uint8_t which, bool on) noexcept {
    const std::uint8_t others =
        slow_path.load(std::memory_order_relaxed) & static_cast<std::uint8_t>(~which);
    slow_path.store(on ? others | which : others, std::memory_order_relaxed);
  }
  KeyHolder keys() const noexcept { return {own_regions, own_region_capacity, pd_number}; }
  std::uint32_t queued() const noexcept { return sq.tail - sq.head; }
  /// After a change of the send queue's head or tail.
  void note_queued() noexcept { has_queued = queued() != 0; }
  /// Gives `count` requests their places in the send queue. The first one's, cut.
  std::uint32_t take_places(std::uint32_t count) noexcept {
    const std::uint64_t first = own->posted;
    store_relaxed(own->posted, first + count);
    return static_cast<std::uint32_t>(first);
  }
  void count_sent(std::uint64_t bytes) noexcept {
    store_relaxed(own->sent_bytes, own->sent_bytes + bytes);
  }
  /// Is there a place in the send queue for one more? How many are free again stands on a line that
  /// whoever polls the send CQ writes: it is looked at when what was seen there last is not enough.
  bool has_place() const noexcept {
    const auto posted = static_cast<std::uint32_t>(own->posted);
    if (posted - own->polled_seen < sq_entries) [[likely]]
      return true;
    own->polled_seen = own->polled.load(std::memory_order_acquire);
    return posted - own->polled_seen < sq_entries;
  }
  /// Work requests that have a place in the send queue.
  std::uint32_t in_send_queue() const noexcept {
    return static_cast<std::uint32_t>(own->posted) - own->polled.load(std::memory_order_acquire);
  }
};

/// The receive that message `index` was given and keeps; nullptr: none yet. REQUIRES: qp.srq.
inline HeldReceive* held_for(Qp& qp, std::uint64_t index) noexcept {
  HeldReceive& held = qp.in.held[index & (qp.in.held_capacity - 1)];
  return held.index == index ? &held : nullptr;
}

/// Of XRC: reliable, unlike those of UD.
inline bool is_xrc_endpoint(const Qp& qp) noexcept {
  return qp.ep.parent != nullptr && qp.ep.parent->xrc != XrcRole::kNone;
}

/// It has more memory from now on than an idle one.
inline void note_spare(Qp& qp) noexcept {
  Qp& known = qp.ep.parent != nullptr ? *qp.ep.parent : qp;
  known.stream.has_spare.store(true, std::memory_order_relaxed);
}

/// The peer's SENDs may share slots. They do not on the way to receives that are shared.
inline bool has_packs(const Qp& qp) noexcept { return qp.srq == nullptr && qp.headroom == 0; }

/// Receive `index`, the oldest, goes to a message of `qp`. The queue's lock is held.
inline void use_up_locked(Srq& srq, Qp& qp, std::uint64_t index) noexcept {
  // In this order: a sender that counts this receive as used up counts the message as served.
  const std::uint64_t served = qp.own->served.load(std::memory_order_relaxed);
  qp.own->served.store(served + 1, std::memory_order_relaxed);
  srq.own->taken.store(index + 1, std::memory_order_release);
}

}  // namespace verbatim::shm
