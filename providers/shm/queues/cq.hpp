// SPDX-License-Identifier: BSD-2-Clause
//
// A completion queue. Send completions (and errors) are stored in its ring when they happen;
// receive completions are not, but for completion counters: poll finds the messages in the peers'
// rings and completes them on the spot. Which rings to look at is known in two ways: a small hot
// set is polled directly, all others announce themselves through the CQ's doorbells. An empty
// poll therefore costs the same with one queue pair and with ten thousand.
//
// So completions come from several places, where an adapter writes one FIFO. A poll takes from the
// first place that has some; after kTurn of them, for as many again, the places take turns, so that
// nothing waits behind an endless supply of later ones elsewhere (poll_in_turns() in poll.cpp).
//
// The lock guards everything below it. Lock order: send lock < CQ lock; registry < CQ lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "providers/shm/queues/completion_batch.hpp"
#include "providers/shm/queues/gathering.hpp"
#include "providers/shm/wire/layout.hpp"
#include "runtime/sync/biased_lock.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "runtime/verbs/handles.hpp"
#include "runtime/verbs/queue_memory.hpp"
#include "runtime/verbs/software/moderation.hpp"

namespace verbatim::shm {

struct Qp;

/// A stored completion.
struct Completion {
  std::uint64_t wr_id;
  Qp* qp;
  std::uint32_t byte_len;
  /// The send queue is free up to and including this one; of a receive, its immediate.
  std::uint32_t sq_index;
  std::uint16_t opcode;    ///< ibv_wc_opcode
  std::uint8_t status;     ///< ibv_wc_status
  bool frees_send_queue;   ///< else it is a receive, which completion_counters.cpp alone stores
  std::uint32_t wc_flags;  ///< of a receive (ibv_wc_flags)
};
static_assert(sizeof(Completion) == 32);

/// When a request completed, by the clocks that the queue's program asked for.
struct CompletionTime {
  std::uint64_t raw = 0;
  std::uint64_t wallclock = 0;
};

inline constexpr std::uint32_t kHotRings = 4;
/// Silent hot rings give their places up after so many messages of others.
inline constexpr std::uint32_t kReplaceAfter = 256;
inline constexpr std::uint32_t kMaxCqe = 1u << 22;

/// So many completions are taken from the first place that has some before the places take turns,
/// and then by turns.
inline constexpr std::uint8_t kTurn = 64;

/// A ring polled at every poll: where its next header will appear and what it must say. Those two
/// are read without the lock too, to see that there is nothing; such a look may be late, never
/// harmful.
struct HotRing {
  std::atomic<const std::atomic<std::uint64_t>*> header{nullptr};
  std::atomic<std::uint32_t> lap{0};
  std::atomic<bool> is_shared{false};  ///< its receives are; read without the lock too
  const std::atomic<std::uint64_t>* last = nullptr;  ///< header after which the lap ends
  std::uint64_t seen = 0;  ///< messages it had brought when its age was last looked at
  Qp* qp = nullptr;

  /// REQUIRES: the CQ's lock.
  void take(const HotRing& other) noexcept {
    header.store(other.header.load(std::memory_order_relaxed), std::memory_order_relaxed);
    lap.store(other.lap.load(std::memory_order_relaxed), std::memory_order_relaxed);
    is_shared.store(other.is_shared.load(std::memory_order_relaxed), std::memory_order_relaxed);
    last = other.last;
    seen = other.seen;
    qp = other.qp;
  }
};

struct Cq : verbatim::Cq {
  alignas(kCacheLine) BiasedLock lock;
  /// Only one thread domain uses it, and polls say so when they lock.
  std::atomic<bool> in_domain{false};
  /// The last poll that looked everywhere found more than one: a hint for the next.
  std::atomic<bool> is_busy{false};
  std::atomic<std::uint32_t> hot_count{0};
  /// Stored completions: [head, tail). Written under the lock, looked at without. These two, `mask`
  /// and `ring` are those of runtime/verbs/software/completion_ring.hpp.
  std::atomic<std::uint32_t> head{0};
  std::atomic<std::uint32_t> tail{0};
  std::uint32_t mask = 0;
  /// Polls after arming during which rings are not made hot: arming would only demote them again.
  std::uint32_t event_mode = 0;
  /// Messages of rings that found no hot place since the last ageing, and how many bring the next.
  std::uint32_t contenders = 0;
  std::uint32_t replace_after = kReplaceAfter;
  /// Not 0: no short way. All but kTurns is work for settle_marks().
  std::uint8_t marks = 0;
  static constexpr std::uint8_t kBroken = 1;  ///< a member met a receive error
  static constexpr std::uint8_t kUnsaid = 2;  ///< a member's first failure is not in the log yet
  static constexpr std::uint8_t kTurns = 4;   ///< the places take turns now
  static constexpr std::uint8_t kAsked = 8;   ///< peers have told of requests for this process
  /// Completions that may still be taken before the turns begin or end. Never 0 while the lock is
  /// free.
  std::uint8_t ahead = kTurn;
  Completion* ring = nullptr;
  CompletionTime* times = nullptr;  ///< beside the ring, of a queue with timestamps
  CqDoorbells* doorbells = nullptr;
  HotRing hot[kHotRings] = {};

  /// QPs with pending sends; polling moves them on. Counted apart so that a poll reads one word,
  /// which also says, in kKept, that the cursor may have completions that it was not asked for.
  alignas(kCacheLine) std::atomic<std::uint32_t> pending_count{0};
  static constexpr std::uint32_t kKept = 1u << 31;
  SpinLock pending_lock;
  Qp* pending_head = nullptr;

  /// Extended polling: completions that were taken out of the queue, of whoever holds the cursor's
  /// lock: those behind `at` up to `last`. Taken, and marked, under the queue's lock too. Lock
  /// order: cursor < live.mutex.
  struct Cursor {
    static constexpr std::uint32_t kBatch = CompletionBatch::kMost;

    alignas(kCacheLine) BiasedLock lock;
    /// Places in `batch`; at 0 it is before the first.
    std::atomic<std::uint32_t> at{0};    ///< of the one that the program sees
    std::atomic<std::uint32_t> last{0};  ///< read without the lock too, to see that there is none
    /// Up to here they have succeeded, and may be handed on unseen; 0 once one is marked.
    std::atomic<std::uint32_t> clean{0};
    bool is_batch = false;                 ///< else each has all that is said of it in `store`
    std::atomic<std::uint64_t> marked{0};  ///< by place: of queue pairs that are no more
    CompletionTime time;
    CompletionBatch batch;  ///< wr_ids of either kind
    ibv_wc store[kBatch + 1];

    bool has_more() const noexcept {
      return at.load(std::memory_order_relaxed) != last.load(std::memory_order_relaxed);
    }
    /// What is said of the one at `place`; of a batch's all but its own two things.
    const ibv_wc& said(std::uint32_t place) const noexcept {
      return is_batch ? batch.rest : store[place];
    }
    std::uint32_t length(std::uint32_t place) const noexcept {
      return is_batch ? batch.lengths[place] : store[place].byte_len;
    }
  } cursor;

  // --- cold
  alignas(kCacheLine) std::uint32_t number = 0;  ///< of its doorbells and CqRecord
  std::atomic<std::uint32_t>* armed = nullptr;   ///< CqRecord::armed
  std::atomic<std::uint32_t>* has_events = nullptr;
  Qp** members = nullptr;  ///< by doorbell, chained through Qp::next_same_bit; grows with the QPs
  std::uint32_t member_capacity = 0;
  std::uint32_t member_next = 0;
  std::uint32_t next_bit = 0;  ///< the doorbell at which the next look begins
  /// How looks at the doorbells are put off.
  Gathering gathering;
  std::uint32_t turn = 0;  ///< with kTurns: whose it is, see poll.cpp
  std::uint64_t overruns = 0;
  bool overrun_reported = false;
  bool ignores_overrun = false;          ///< the program asked for it: nobody is told
  const verbatim::Td* domain = nullptr;  ///< it was made with
  bool is_alone = false;                 ///< its cursor has no lock
  std::uint32_t clocks = 0;  ///< IBV_WC_EX_WITH_COMPLETION_TIMESTAMP* that were asked for
  /// What it was armed with, while held, is a CqRecord's kind. Messages count as taken by polls that
  /// doorbells led to: while the queue is armed there are no others.
  Moderation moderation;
  /// Each event tells of one completion, of the first that none told of. What has been told of is no
  /// reason for an event when the queue is armed again before it is polled.
  struct Told {
    std::uint32_t stored = 0;  ///< stored completions before this one
    const Qp* qp = nullptr;    ///< and of this queue pair's messages
    std::uint64_t until = 0;   ///< those before this one
  } told;
  QueueMemory memory;  ///< whose `ring` and `times` are

  bool has_pending() const noexcept {
    return (pending_count.load(std::memory_order_seq_cst) & ~kKept) != 0;
  }
  bool cursor_has_kept() const noexcept {
    return (pending_count.load(std::memory_order_relaxed) & kKept) != 0;
  }
  static Cq& from(ibv_cq* cq) noexcept { return *reinterpret_cast<Cq*>(cq); }
  static Cq& from(ibv_cq_ex* cq) noexcept { return *reinterpret_cast<Cq*>(cq); }
};

/// Takes a queue's lock if its owner asks, of a domain or not; ends with let_go_as_owner().
[[gnu::always_inline]] inline bool take_as_owner(Cq& cq) noexcept {
  return cq.in_domain.load(std::memory_order_relaxed) ? cq.lock.take_as_domain()
                                                      : cq.lock.take_as_owner();
}

/// So many completions have been taken from wherever there were some. REQUIRES: cq.lock, no more
/// than cq.ahead.
[[gnu::always_inline]] inline void count_ahead(Cq& cq, int taken) noexcept {
  cq.ahead = static_cast<std::uint8_t>(cq.ahead - taken);
  if (cq.ahead == 0) [[unlikely]] {
    cq.ahead = kTurn;
    cq.marks |= Cq::kTurns;
  }
}

}  // namespace verbatim::shm
