// SPDX-License-Identifier: BSD-2-Clause
//
// ibv_poll_cq: stored completions first, then the hot rings, then whatever the doorbells announce.
#pragma once

#include <algorithm>
#include <utility>

#include "providers/shm/queues/cq.hpp"
#include "providers/shm/queues/hot_ring.hpp"
#include "providers/shm/queues/polled_rings.hpp"
#include "providers/shm/queues/send_lock.hpp"
#include "providers/shm/receive/receive_shared_fast.hpp"
#include "runtime/verbs/empty_polls.hpp"

namespace verbatim::shm {

/// Looks at the QPs whose doorbells were rung; makes busy rings hot. Returns entries written.
/// REQUIRES: cq.lock.
[[gnu::noinline]] int poll_doorbells(Cq& cq, int room, ibv_wc* wc) noexcept;
/// Fills `wc` up to `room` behind the `got` that have been written, and lets the places take turns
/// when they are due. REQUIRES: cq.lock.
[[gnu::cold, gnu::noinline]] int poll_on(Cq& cq, int room, ibv_wc* wc, int got) noexcept;
/// What keeps a poll from its fast way: completions that the cursor has kept, which are given first
/// (their number), and sends that wait, which are moved on.
[[gnu::cold, gnu::noinline]] int poll_pending(Cq& cq, int room, ibv_wc* wc) noexcept;
/// Does what a poll may not do under the CQ's lock: QPs that a received message broke are moved to
/// the error state, and failures are said in the log.
[[gnu::cold, gnu::noinline]] void settle_marks(Cq& cq) noexcept;

inline void take_stored(Cq& cq, std::uint32_t head, ibv_wc& wc) noexcept {
  const Completion& c = cq.ring[head & cq.mask];
  wc.wr_id = c.wr_id;
  wc.status = static_cast<ibv_wc_status>(c.status);
  wc.opcode = static_cast<ibv_wc_opcode>(c.opcode);
  wc.vendor_err = 0;
  wc.byte_len = c.byte_len;
  wc.imm_data = 0;
  wc.qp_num = c.qp->plain.qp_num;
  wc.src_qp = load_relaxed(c.qp->own->dest_qpn);
  wc.wc_flags = c.wc_flags;
  wc.pkey_index = 0;
  wc.slid = 0;
  wc.sl = 0;
  wc.dlid_path_bits = 0;
  if (c.frees_send_queue) [[likely]]
    c.qp->own->polled.store(c.sq_index + 1, std::memory_order_release);
  else
    wc.imm_data = c.sq_index;
}

[[gnu::always_inline]] inline int poll_stored(Cq& cq, int room, ibv_wc* wc) noexcept {
  std::uint32_t head = cq.head.load(std::memory_order_relaxed);
  const std::uint32_t tail = cq.tail.load(std::memory_order_relaxed);
  int got = 0;
  while (head != tail && got < room) take_stored(cq, head++, wc[got++]);
  if (got != 0) cq.head.store(head, std::memory_order_relaxed);
  return got;
}

inline const Slot& slot_of(const std::atomic<std::uint64_t>* header) noexcept {
  return *reinterpret_cast<const Slot*>(reinterpret_cast<const unsigned char*>(header) -
                                        offsetof(Slot, header));
}

/// The same when the message at `header`, of one line, has been taken.
[[gnu::always_inline]] inline void point_behind(HotRing& hot,
                                                const std::atomic<std::uint64_t>* header) noexcept {
  if (header == hot.last) [[unlikely]]
    return point_at_next(hot);
  hot.header.store(header + sizeof(Slot) / sizeof(*header), std::memory_order_relaxed);
}

/// The messages in one hot ring. `behind`: a message has been taken just now, so others are likely
/// to lie behind it. `ends`: the ring's sender has left, it is to be dropped.
[[gnu::always_inline]] inline int poll_ring(HotRing& hot, int room, ibv_wc* wc, bool behind,
                                            bool& ends) noexcept {
  int got = 0;
  bool has_moved = false;
  while (got < room) {
    const std::atomic<std::uint64_t>* at = hot.header.load(std::memory_order_relaxed);
    // Pairs with the release in Sends::store().
    const std::uint64_t h = at->load(std::memory_order_acquire);
    if (header::lap(h) != hot.lap.load(std::memory_order_relaxed)) break;
    // One message is often alone; a second one, or a pack, has others behind it. Those of
    // several lines, or placed, cost more than to look for another.
    const SlotKind kind = header::kind(h);
    if (behind || got != 0 || kind > SlotKind::kStream) {
      if (const int run = take_run(*hot.qp, room - got, wc + got); run != 0) [[likely]] {
        got += run;
        point_at_next(hot);
        continue;
      }
    }
    const Taken taken = take_message(*hot.qp, slot_of(at), h, wc[got]);
    if (taken != Taken::kCompletion) [[unlikely]] {
      if (taken == Taken::kMoved) {
        point_at_next(hot);
        // Once: who moves for ever does not hold up a poll.
        if (std::exchange(has_moved, true)) break;
        continue;
      }
      ends = taken == Taken::kNothing;
      break;
    }
    ++got;
    point_at_next(hot);
  }
  return got;
}

[[gnu::always_inline]] inline int poll_rings(Cq& cq, int room, ibv_wc* wc, bool behind) noexcept {
  int got = 0;
  for (std::uint32_t i = 0; i < cq.hot_count.load(std::memory_order_relaxed); ++i) {
    bool ends = false;
    got += poll_ring(cq.hot[i], room - got, wc + got, behind, ends);
    if (ends) [[unlikely]]
      drop_hot(cq, i--);
  }
  return got;
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define VBT_SEES_RACES 1
#endif
#endif

#ifdef VBT_SEES_RACES
/// Who looks without the lock may be so late that the bytes of a longer message lie there by now:
/// that is found out under the lock, and no race.
[[gnu::noinline, clang::no_sanitize("thread")]] inline std::uint64_t peek_header(
    const std::atomic<std::uint64_t>& header) noexcept {
  return *reinterpret_cast<const volatile std::uint64_t*>(&header);
}
#else
inline std::uint64_t peek_header(const std::atomic<std::uint64_t>& header) noexcept {
  return header.load(std::memory_order_relaxed);
}
#endif

/// Something lies where the ring's next message will, by a look without the lock.
inline bool has_message_for(const HotRing& hot) noexcept {
  return header::lap(peek_header(*hot.header.load(std::memory_order_relaxed))) ==
         hot.lap.load(std::memory_order_relaxed);
}

/// A look without the lock: most polls find nothing, and a lock costs more than the look. What is
/// missed here is found by the next poll.
inline bool something_came(const Cq& cq) noexcept {
  if (cq.head.load(std::memory_order_relaxed) != cq.tail.load(std::memory_order_relaxed))
    return true;
  const std::uint32_t hot_count = cq.hot_count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < hot_count; ++i)
    if (has_message_for(cq.hot[i])) return true;
  return cq.doorbells->is_any_rung();
}

/// Stored completions, then the hot rings, then what the doorbells announce; by turns when those are
/// due. `behind` as in poll_ring(). Returns fewer than `room` only when there was no more at a moment
/// since it was called. REQUIRES: cq.lock.
[[gnu::always_inline]] inline int take_come(Cq& cq, int room, ibv_wc* wc, bool behind) noexcept {
  if ((cq.marks & Cq::kTurns) != 0) [[unlikely]]
    return poll_on(cq, room, wc, 0);
  const int most = std::min<int>(room, cq.ahead);
  int got = poll_stored(cq, most, wc);
  if (got < most) got += poll_rings(cq, most - got, wc + got, behind || got != 0);
  if (got < most && cq.doorbells->is_any_rung()) [[unlikely]]
    got += poll_doorbells(cq, most - got, wc + got);
  if (got < most) {
    cq.ahead = kTurn;  // nobody waits
    return got;
  }
  count_ahead(cq, got);
  return got == room ? got : poll_on(cq, room, wc, got);
}

/// All there is, behind the `got` that have been written already. Returns how many there are with
/// them.
[[gnu::always_inline]] inline int poll_all_fast(Cq& cq, int room, ibv_wc* wc, int got) noexcept {
  bool marked = false;
  {
    DomainGuard guard(cq.lock, cq.in_domain.load(std::memory_order_relaxed));
    got += take_come(cq, room - got, wc + got, got != 0);
    marked = (cq.marks & ~Cq::kTurns) != 0;
  }
  cq.is_busy.store(got > 1, std::memory_order_relaxed);
  if (marked) [[unlikely]]
    settle_marks(cq);
  count_if_empty(got);
  return got;
}

// What poll_cq_fast() leaves to, by jumps: the look that finds nothing needs no registers of its
// own, and neither does what is found need those of the rest. `i` is the hot ring that has
// something.
[[gnu::noinline]] int poll_kept_first(Cq& cq, int room, ibv_wc* wc) noexcept;
[[gnu::noinline]] int poll_stored_first(Cq& cq, int room, ibv_wc* wc) noexcept;
[[gnu::noinline]] int poll_own(Cq& cq, int room, ibv_wc* wc, std::uint32_t i) noexcept;
[[gnu::noinline]] int poll_long(Cq& cq, int room, ibv_wc* wc, std::uint32_t i) noexcept;
[[gnu::noinline]] int poll_shared(Cq& cq, int room, ibv_wc* wc, std::uint32_t i) noexcept;
[[gnu::noinline]] int poll_all(Cq& cq, int room, ibv_wc* wc, int got) noexcept;

/// Everything but what the cursor has kept, and sends that wait.
[[gnu::always_inline]] inline int poll_come(Cq& cq, int room, ibv_wc* wc) noexcept {
  // Without the lock, as something_came().
  if (cq.head.load(std::memory_order_relaxed) != cq.tail.load(std::memory_order_relaxed))
    return poll_stored_first(cq, room, wc);
  const std::uint32_t hot_count = cq.hot_count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < hot_count; ++i) {
    const HotRing& hot = cq.hot[i];
    if (!has_message_for(hot)) continue;
    return hot.is_shared.load(std::memory_order_relaxed) ? poll_shared(cq, room, wc, i)
                                                         : poll_own(cq, room, wc, i);
  }
  return cq.doorbells->is_any_rung() ? poll_all(cq, room, wc, 0) : count_empty_poll(0);
}

[[gnu::always_inline]] inline int poll_cq_fast(Cq& cq, int room, ibv_wc* wc) noexcept {
  if (cq.pending_count.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return poll_kept_first(cq, room, wc);
  return poll_come(cq, room, wc);
}

/// Stored completions, when the queue's lock is this thread's. Nothing is called on the way.
[[gnu::always_inline]] inline int poll_stored_alone(Cq& cq, int room, ibv_wc* wc) noexcept {
  if (!take_as_owner(cq)) [[unlikely]]
    return 0;
  int got = 0;
  if (cq.marks == 0) {
    got = poll_stored(cq, std::min<int>(room, cq.ahead), wc);
    count_ahead(cq, got);
  }
  cq.lock.let_go_as_owner();
  return got;
}

/// May hot ring `i`, which has something, be taken from alone? Takes the queue's lock if so: not
/// when it is another thread's, and not when more is likely to be wanted and to be there.
[[gnu::always_inline]] inline bool begin_one(Cq& cq, int room, std::uint32_t i, bool shared,
                                             std::uint64_t& h) noexcept {
  if (room <= 0 || (room > 1 && cq.is_busy.load(std::memory_order_relaxed)) || !take_as_owner(cq))
      [[unlikely]]
    return false;
  // Looked at again: others may have had the lock since.
  const HotRing& hot = cq.hot[i];
  if (i < cq.hot_count.load(std::memory_order_relaxed) && cq.marks == 0 &&
      hot.is_shared.load(std::memory_order_relaxed) == shared) [[likely]] {
    // Pairs with the release in Sends::store().
    h = hot.header.load(std::memory_order_relaxed)->load(std::memory_order_acquire);
    if (header::lap(h) == hot.lap.load(std::memory_order_relaxed)) [[likely]]
      return true;
  }
  cq.lock.let_go_as_owner();
  return false;
}

/// The message at hot ring `i`, if it lies whole in its slot for a receive of its own and the
/// queue's lock is this thread's. Nothing is called on the way.
[[gnu::always_inline]] inline bool take_one(Cq& cq, int room, ibv_wc& wc,
                                            std::uint32_t i) noexcept {
  std::uint64_t h;
  if (!begin_one(cq, room, i, false, h)) [[unlikely]]
    return false;
  HotRing& hot = cq.hot[i];
  const std::atomic<std::uint64_t>* at = hot.header.load(std::memory_order_relaxed);
  const bool taken = take_simple(*hot.qp, slot_of(at), h, wc);
  if (taken) [[likely]] {
    point_behind(hot, at);
    count_ahead(cq, 1);
  }
  cq.lock.let_go_as_owner();
  return taken;
}

/// The same of one that lies in several lines, or in its receive.
[[gnu::always_inline]] inline bool take_one_long(Cq& cq, int room, ibv_wc& wc,
                                                 std::uint32_t i) noexcept {
  std::uint64_t h;
  if (!begin_one(cq, room, i, false, h)) return false;
  HotRing& hot = cq.hot[i];
  const bool taken = take_run(*hot.qp, 1, &wc) == 1;
  if (taken) {
    point_at_next(hot);
    count_ahead(cq, 1);
  }
  cq.lock.let_go_as_owner();
  return taken;
}

/// The same of shared receives, whose lock must be this thread's too.
[[gnu::always_inline]] inline bool take_one_shared(Cq& cq, int room, ibv_wc& wc,
                                                   std::uint32_t i) noexcept {
  std::uint64_t h;
  if (!begin_one(cq, room, i, true, h)) [[unlikely]]
    return false;
  HotRing& hot = cq.hot[i];
  Qp& qp = *hot.qp;
  Srq& srq = *qp.srq;
  unsigned char* to;
  std::uint64_t wr_id;
  bool taken = false;
  if (is_whole(qp, h) && srq.lock.take_as_owner()) [[likely]] {
    taken = use_up_for_small(srq, qp, header::inline_length(h) + qp.headroom, to, wr_id);
    srq.lock.let_go_as_owner();
  }
  if (taken) [[likely]] {
    const std::atomic<std::uint64_t>* at = hot.header.load(std::memory_order_relaxed);
    finish_whole(qp, slot_of(at).data, header::inline_length(h), 1, h, to, wr_id, wc);
    point_behind(hot, at);
    count_ahead(cq, 1);
  }
  cq.lock.let_go_as_owner();
  return taken;
}

}  // namespace verbatim::shm
