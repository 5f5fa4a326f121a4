// SPDX-License-Identifier: BSD-2-Clause
//
// A queue pair: our private half. What the peer sees of it is its QpRecord.
//
// Three locks, taken in this order: send lock (SendLock, the record's active word) < the CQ's lock;
// receive lock (posting receives) on its own. The members below are grouped by the lock that guards
// them, each group on its own cache lines.
//
//   send side       guarded by the send lock
//   receive side    guarded by the receive CQ's lock (consumption) ...
//   receive posting ... and the receive lock (production); rq_tail publishes from here to there
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "providers/shm/fabric/peer.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/arrival.hpp"
#include "providers/shm/queues/copy_choice.hpp"
#include "providers/shm/queues/cq.hpp"
#include "providers/shm/queues/failure_record.hpp"
#include "providers/shm/queues/lane_role.hpp"
#include "providers/shm/queues/message_ring.hpp"
#include "providers/shm/queues/pending_send.hpp"
#include "providers/shm/queues/request_progress.hpp"
#include "providers/shm/queues/shared_receive.hpp"
#include "providers/shm/queues/work_batch.hpp"
#include "providers/shm/queues/xrc_role.hpp"
#include "providers/shm/wire/known_receives.hpp"
#include "providers/shm/wire/layout.hpp"
#include "providers/shm/wire/message_pack.hpp"
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

/// A window of the peer's that a message of ours ends.
struct EndedKey {
  std::uint64_t serial = 0;
  std::uint32_t index = 0;
};
inline constexpr std::size_t kEndedKeys = 8;

struct Mw;
struct CountedQp;

/// Memory of the peer that a WRITE, or a SEND, went to: while the record's serial says so, the next
/// one with this key goes there without looking it up again.
struct WriteTarget {
  const std::atomic<std::uint64_t>* serial = nullptr;
  std::uint64_t serial_seen = 0;
  std::uint64_t iova = 0;
  std::uint64_t length = 0;
  unsigned char* base = nullptr;  ///< where iova lies in our address space
  std::uint32_t rkey = 0;         ///< or the lkey of a receive; 0: no target known
};

struct Datagrams;
struct QpKind;

struct Qp : verbatim::Qp {
  // --- constant after create
  alignas(kCacheLine) QpRecord* own = nullptr;
  Cq* send_cq = nullptr;
  Cq* recv_cq = nullptr;
  const RegionRecord* own_regions = nullptr;
  std::uint32_t own_region_capacity = 0;
  std::uint32_t index = 0;  ///< in the segment's QP table
  std::uint32_t pd_number = 0;
  std::uint32_t sq_entries = 0;
  std::uint32_t max_inline = 0;
  std::uint16_t max_send_sge = 0;
  bool signal_all = false;
  bool is_strict = false;        ///< the general path warns
  bool posts_generally = false;  ///< every post takes the general path: strict, or counted
  bool in_domain = false;        ///< of a thread domain, which says so when it locks
  /// Why a post leaves the shortest way at once: kInDomain, kToShared. Read without a lock, since
  /// every way is right; only not as fast.
  std::atomic<std::uint8_t> detours{0};
  /// What it sends may be lost without a word (UC, UD).
  bool may_lose = false;
  /// Bytes that each receive has in front of the message: the routing header's of UD.
  std::uint8_t headroom = 0;
  XrcRole xrc = XrcRole::kNone;
  Datagrams* datagrams = nullptr;  ///< of a UD queue pair
  LaneBook* book = nullptr;        ///< of one with lanes
  LaneEnd lane{};
  Srq* srq = nullptr;            ///< where its receives come from, else from rq
  const QpKind* kind = nullptr;  ///< what it does in its own way; of connected ones nothing

  // --- send side, written only when attached or reset
  /// RTS, attached to the peer, ring made, nothing pending: the fast path may run. Any doubt clears
  /// it.
  alignas(kCacheLine) bool fast = false;
  bool ring_always = false;  ///< the peer has no membarrier: ring (a full fence) at every message
  bool self = false;
  Peer* peer = nullptr;
  const QpRecord* remote = nullptr;  ///< nullptr until attached
  std::uint64_t remote_session = 0;
  const RegionRecord* remote_regions = nullptr;
  std::uint32_t remote_region_capacity = 0;
  std::uint32_t remote_pd = 0;
  std::uint32_t remote_rq_log = 0;   ///< entries of the peer's receive queue
  std::uint64_t remote_rq_mask = 0;  ///< the same, less one
  /// nullptr until the peer posted a receive; stays so when its receives are shared.
  const std::atomic<std::uint64_t>* credits = nullptr;

  /// Of its receives, remote_max_sge each; nullptr as long as `credits`.
  const ReceiveSge* receive_sges = nullptr;
  std::uint32_t remote_max_sge = 0;

  WriteTarget write_target{};
  WriteTarget receive_target{};
  /// So many messages are not placed: the last that was tried had a receive that is not mapped.
  std::uint8_t unplaced = 0;
  WorkBatch work{};
  EndedKey ended[kEndedKeys] = {};  ///< until the peer has taken the messages
  SharedCredits shared{};
  /// How many messages the application has received by it, or by the one whose lane it is.
  const std::atomic<std::uint64_t>* received = &rq_head;

  // --- send side, written per message
  alignas(kCacheLine) std::uint64_t sent = 0;  ///< receives of the peer that we have used up
  KnownReceives known_receives{};
  MessageRing ring{};
  std::uint64_t heard = 0;       ///< *received when a message was sent last, see ask_for_slot()
  std::uint32_t queue_head = 0;  ///< pending ones: [queue_head, queue_tail)
  std::uint32_t queue_tail = 0;
  std::uint64_t produced = 0;       ///< stream bytes
  std::uint64_t consumed_seen = 0;  ///< of them, the peer was seen to have taken
  bool receiver_sleeps = false;     ///< its service thread had to be asked to take from the window
  bool receiver_stuck = false;      ///< and did not: the window is of no use for now
  bool window_was_full = false;
  bool told_fault = false;       ///< the peer was told that its half must end
  bool awaits_meeting = false;   ///< the head waits until processes have met, or a lane is there
  std::uint32_t generation = 0;  ///< of our sending half; outlives resets
  PendingSend* queue = nullptr;
  ibv_sge* queue_sges = nullptr;
  unsigned char* queue_inline = nullptr;
  Progress progress{};
  CopyChoice copy_choice{};
  std::uint64_t retry_ns = 0;      ///< timeout and retry_cnt as a span; ~0: for ever
  std::uint64_t peer_seen_ns = 0;  ///< now_ns() when its process was last seen alive
  std::uint8_t rnr_retry = 0;
  /// In SQD: the request at the head had begun, and is finished. Anybody may read it.
  std::atomic<bool> finishes_head{false};
  bool tells_drained = false;       ///< an event says when it has been finished
  bool has_reserved_ring = false;   ///< there is room for our first message
  std::uint64_t produced_then = 0;  ///< `produced` when it was last asked for spare memory
  /// It, or a lane of its own, may have more memory than an idle one: the sweep looks at it.
  std::atomic<bool> has_spare{false};
  CountedQp* counted = nullptr;  ///< what completion counters count of it
  /// What the first request after the error ends in; those behind it flush.
  ibv_wc_status first_flush = IBV_WC_WR_FLUSH_ERR;
  std::uint64_t ask_sequence = 0;
  std::uint64_t bounce = 0;  ///< chunk for kPlace, 0: none yet
  Asking asking{};

  /// In a CQ's list of QPs with pending sends.
  alignas(kCacheLine) Qp* next_pending = nullptr;
  std::atomic<bool> is_pending{false};

  // --- receive side: consumption, under the receive CQ's lock
  alignas(kCacheLine) const Slot* rx_ring =
      nullptr;  ///< nullptr until the peer's first message was met
  const QpRecord* rx_remote = nullptr;
  std::uint32_t session = 0;     ///< what `accepts` says, or said before an error
  std::uint64_t rx_session = 0;  ///< the peer's tx_session when we attached
  Peer* rx_peer = nullptr;
  std::uint32_t rx_log = 0;
  std::uint64_t rx_line = 0;  ///< number of the line behind what was taken, and behind `pack`
  // How completions name the sender.
  std::uint32_t rx_source = 0;
  std::uint16_t rx_slid = 0;
  std::uint32_t hot_index = kNotHot;
  std::uint32_t announced = 0;  ///< doorbells that led to messages since it was last hot
  Arrival pulled{};  ///< messages below its index are where they belong, completed or not
  std::uint64_t stream_taken = 0;  ///< bytes copied out of the first message that is not
  /// Receives taken from the shared queue for messages that are not whole yet, by message.
  HeldReceive* held = nullptr;
  std::uint32_t held_capacity = 0;  ///< power of two, or 0
  std::uint32_t held_count = 0;
  bool last_receive_said = false;  ///< IBV_EVENT_QP_LAST_WQE_REACHED
  std::uint32_t fenced_for = 0;    ///< session whose sender, of a domain, has passed a fence since
  std::uint64_t flush_after = 0;   ///< now_ns() from which a flush no longer waits for the sender
  std::uint64_t ending_message = ~std::uint64_t{0};  ///< whose window was closed last
  std::uint64_t ended_messages = 0;                  ///< of those below it, nobody copies any more
  QuietWait ending{};
  std::uint64_t failed_receives = 0;  ///< of rq_head
  bool broken = false;                ///< met an error that must end the QP, see settle_marks()
  bool lied = false;                  ///< and no honest peer brings one about
  std::atomic<std::uint64_t> rq_head{0};
  MessagePack pack;
  Qp* next_same_bit = nullptr;  ///< CQ members that share a doorbell bit

  // --- receive side: posting, under the receive lock
  alignas(kCacheLine) std::atomic<std::uint64_t> rq_tail{0};
  BiasedLock rq_lock;
  std::uint8_t credit_lines_ahead = 2;  ///< that a list of receives asks for: as long as the last
  /// Of a thread domain: who may touch the send lock's word, which its own thread stores plainly.
  BiasedLock domain_lock;
  ReceiveStore rq;

  // --- control
  /// The state that data paths test; mirrors plain.state without its type.
  std::atomic<std::uint32_t> mode{IBV_QPS_RESET};
  Mw* windows = nullptr;     ///< of type 2, bound on it; guarded by their lock
  Mutex control;             ///< orders modify_qp calls; outermost
  bool lingering = false;    ///< reset or destroyed before the peer took all that we had sent
  std::uint64_t served = 0;  ///< last service request of the peer we have answered
  Serving serving;
  /// The process that has the other half, held from when meet_peer() found it until detach().
  /// `peer` and `rx_peer` are it too, under their locks.
  std::atomic<Peer*> met{nullptr};
  /// Its place among those whose senders are watched, under live.mutex.
  std::uint32_t watch_index = kNotWatched;
  QueueMemory memory;           ///< whose the queues are, as far as no peer sees them
  bool disowned = false;        ///< an XRC target that only others have open: its handle is gone
  bool counts_idle_cq = false;  ///< its CQ is the one of targets, which this process made
  Qp* next_orphan = nullptr;
  Qp* next_live = nullptr;
  Qp* prev_live = nullptr;
  FailureRecord failures;

  static constexpr std::uint8_t kInDomain = 1;  ///< as in_domain
  static constexpr std::uint8_t kToShared = 2;  ///< its SENDs go to receives that are shared
  static constexpr std::uint32_t kNotHot = ~0u;
  static constexpr std::uint32_t kNotWatched = ~0u;
  static Qp& from(ibv_qp* qp) noexcept { return *reinterpret_cast<Qp*>(qp); }
  static Qp& from(ibv_qp_ex* qp) noexcept { return *reinterpret_cast<Qp*>(qp); }

  void set_detour(std::uint8_t which, bool on) noexcept {
    const std::uint8_t others =
        detours.load(std::memory_order_relaxed) & static_cast<std::uint8_t>(~which);
    detours.store(on ? others | which : others, std::memory_order_relaxed);
  }
  KeyHolder keys() const noexcept { return {own_regions, own_region_capacity, pd_number}; }
  std::uint32_t queued() const noexcept { return queue_tail - queue_head; }
  /// Gives `count` requests their places in the send queue. The first one's, cut.
  std::uint32_t take_places(std::uint32_t count) noexcept {
    const std::uint64_t first = own->posted;
    poke(own->posted, first + count);
    return static_cast<std::uint32_t>(first);
  }
  void count_sent(std::uint64_t bytes) noexcept { poke(own->sent_bytes, own->sent_bytes + bytes); }
  /// Work requests that have a place in the send queue.
  std::uint32_t in_send_queue() const noexcept {
    return static_cast<std::uint32_t>(own->posted) - own->polled.load(std::memory_order_acquire);
  }
};

/// The receive that message `index` was given and keeps; nullptr: none yet. REQUIRES: qp.srq.
inline HeldReceive* held_for(Qp& qp, std::uint64_t index) noexcept {
  HeldReceive& held = qp.held[index & (qp.held_capacity - 1)];
  return held.index == index ? &held : nullptr;
}

/// Of XRC: reliable, unlike those of UD.
inline bool is_xrc_lane(const Qp& qp) noexcept {
  return qp.lane.face != nullptr && qp.lane.face->xrc != XrcRole::kNone;
}

/// It has more memory from now on than an idle one.
inline void note_spare(Qp& qp) noexcept {
  Qp& known = qp.lane.face != nullptr ? *qp.lane.face : qp;
  known.has_spare.store(true, std::memory_order_relaxed);
}

/// The peer's SENDs may share slots. They do not on the way to receives that are shared.
inline bool has_packs(const Qp& qp) noexcept { return qp.srq == nullptr && qp.headroom == 0; }

inline void use_up_locked(Srq& srq, Qp& qp, std::uint64_t index) noexcept {
  // In this order: a sender that counts this receive as used up counts the message as served.
  const std::uint64_t served = qp.own->served.load(std::memory_order_relaxed);
  qp.own->served.store(served + 1, std::memory_order_relaxed);
  srq.own->taken.store(index + 1, std::memory_order_release);
}

}  // namespace verbatim::shm
