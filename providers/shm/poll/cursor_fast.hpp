// SPDX-License-Identifier: BSD-2-Clause
//
// ibv_start_poll, ibv_next_poll, ibv_end_poll: the queue seen through a cursor.
//
// From start to end the cursor belongs to one thread (its own lock). Completions are taken out of
// the queue some at a time, under the queue's lock, and handed on one by one without it. So a
// program may post, poll and destroy in between, as it may with an adapter, and the service thread
// never waits for a program that thinks about a completion.
//
// What was taken and not asked for when the program ends its round stays with the cursor: the next
// round, or the next ibv_poll_cq, begins with it. Completions of a queue pair that is reset or
// destroyed meanwhile are marked, and passed over.
#pragma once

#include <cerrno>

#include "providers/shm/poll/poll_fast.hpp"
#include "providers/shm/transfer/send_queue.hpp"

namespace verbatim::shm {

/// Takes the time of the completion that was taken, of a queue whose program asked for it. `head`:
/// of the stored ones, before. REQUIRES: cq.lock.
[[gnu::cold, gnu::noinline]] void stamp_taken(Cq& cq, std::uint32_t head) noexcept;
/// Puts the cursor on the next completion taken that is not marked. False: there is none.
[[gnu::cold, gnu::noinline]] bool pass_marked(Cq::Cursor& cursor) noexcept;
/// Says to ibv_poll_cq whether the cursor has kept completions.
[[gnu::noinline]] void note_kept(Cq& cq, bool some) noexcept;

/// Puts the wr_ids of those in `store` where a batch has its own. Returns how far they have
/// succeeded.
[[gnu::noinline]] std::uint32_t line_up(Cq::Cursor& cursor, std::uint32_t count) noexcept;

/// Small messages of the one hot ring, for receives of its queue pair's own, when nothing else has
/// come. REQUIRES: cq.lock. Returns how many.
[[gnu::always_inline]] inline std::uint32_t fill_row(Cq& cq) noexcept {
  if (cq.hot_count.load(std::memory_order_relaxed) != 1 ||
      cq.head.load(std::memory_order_relaxed) != cq.tail.load(std::memory_order_relaxed) ||
      cq.doorbells->is_any_rung())
    return 0;
  Qp& qp = *cq.hot[0].qp;
  // Of shared receives, and of an endpoint, none is ever left.
  if (qp.in.head.load(std::memory_order_relaxed) == qp.rq.tail.load(std::memory_order_relaxed))
    return 0;
  const std::uint32_t got = take_batch(qp, cq.cursor.batch);
  if (got != 0) point_at_next(cq.hot[0]);
  return got;
}

/// Takes completions out of the queue. False: there are none. kStamped: one, with its time.
template <bool kStamped>
[[gnu::always_inline]] inline bool fill_cursor(Cq& cq) noexcept {
  constexpr int kMost = kStamped ? 1 : Cq::Cursor::kBatch;
  Cq::Cursor& cursor = cq.cursor;
  const bool was_busy = cq.is_busy.load(std::memory_order_relaxed);
  std::uint32_t got;
  bool marked;
  {
    DomainGuard guard(cq.lock, cq.in_domain.load(std::memory_order_relaxed));
    got = !kStamped && was_busy ? fill_row(cq) : 0;
    const bool is_batch = got != 0;
    std::uint32_t clean = got;
    if (!is_batch) {
      const std::uint32_t head = cq.head.load(std::memory_order_relaxed);
      got = static_cast<std::uint32_t>(take_come(cq, kMost, &cursor.store[1], was_busy));
      if (kStamped && got != 0) stamp_taken(cq, head);
      // The first is stepped on, which looks at all that is said of it.
      if (got == 1)
        cursor.batch.wr_ids[1] = cursor.store[1].wr_id;
      else if (got != 0)
        clean = line_up(cursor, got);
    }
    marked = (cq.marks & ~Cq::kTurns) != 0;
    if (got != 0) {
      cursor.is_batch = is_batch;
      cursor.marked.store(0, std::memory_order_relaxed);
      cursor.at.store(0, std::memory_order_relaxed);
      cursor.last.store(got, std::memory_order_relaxed);
      cursor.clean.store(clean, std::memory_order_relaxed);
    }
  }
  cq.is_busy.store(got > 1, std::memory_order_relaxed);
  if (got != 0) end_empty_polls();
  if (marked) [[unlikely]]
    settle_marks(cq);
  return got != 0;
}

/// Puts the cursor on the next completion that was taken, if there is one.
[[gnu::always_inline]] inline bool step_cursor(Cq& cq) noexcept {
  Cq::Cursor& cursor = cq.cursor;
  if (!cursor.has_more()) return false;
  std::uint32_t at = cursor.at.load(std::memory_order_relaxed) + 1;
  cursor.at.store(at, std::memory_order_relaxed);
  if (cursor.marked.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    if (!pass_marked(cursor)) return false;
    at = cursor.at.load(std::memory_order_relaxed);
  }
  cq.extended.status = cursor.said(at).status;
  cq.extended.wr_id = cursor.batch.wr_ids[at];
  return true;
}

/// Takes what has come, and puts the cursor on the first of it.
template <bool kStamped>
[[gnu::always_inline]] inline int take_more(Cq& cq) noexcept {
  do {
    if (!fill_cursor<kStamped>(cq)) return ENOENT;
  } while (!step_cursor(cq));
  return 0;
}

/// Goes on with what was taken and is left, or else with what has come since the last look.
template <bool kStamped>
[[gnu::always_inline]] inline int go_on(Cq& cq) noexcept {
  if (step_cursor(cq)) return 0;
  return something_came(cq) ? take_more<kStamped>(cq) : count_empty_poll(ENOENT);
}

/// `again` does go_on(), left to by a jump, so that a step along what was taken needs no registers
/// of its own. The status is that of the one before: it, too, has succeeded.
template <class Again>
[[gnu::always_inline]] inline int next_poll_fast(Cq& cq, Again again) noexcept {
  Cq::Cursor& cursor = cq.cursor;
  const std::uint32_t at = cursor.at.load(std::memory_order_relaxed);
  if (at >= cursor.clean.load(std::memory_order_relaxed)) [[unlikely]]
    return again(cq);
  cursor.at.store(at + 1, std::memory_order_relaxed);
  cq.extended.wr_id = cursor.batch.wr_ids[at + 1];
  return 0;
}

/// What ibv_start_poll does before it looks: 0 or EINVAL.
[[gnu::always_inline]] inline int begin_poll(Cq& cq, const ibv_poll_cq_attr* attr) noexcept {
  if (attr != nullptr && attr->comp_mask != 0) [[unlikely]]
    return EINVAL;
  if (cq.has_pending()) [[unlikely]]
    progress_pending(cq, SendLock::As::kUser);
  return 0;
}

/// Of one with timestamps, whose clock takes longer than to look, the queue itself says whether one
/// thread at a time uses it.
template <bool kStamped>
[[gnu::always_inline]] inline int start_poll_fast(Cq& cq, const ibv_poll_cq_attr* attr) noexcept {
  if (const int error = begin_poll(cq, attr); error != 0) [[unlikely]]
    return error;
  // A look without the locks, as ibv_poll_cq's.
  if (!cq.cursor.has_more() && !something_came(cq)) return count_empty_poll(ENOENT);
  const bool is_alone = kStamped && cq.is_alone;
  if (!is_alone) cq.cursor.lock.lock();
  if (step_cursor(cq) || take_more<kStamped>(cq) == 0) [[likely]]
    return 0;
  if (!is_alone) cq.cursor.lock.unlock();
  return count_empty_poll(ENOENT);
}

/// The same when the program has said that one thread at a time uses the queue: then to start is to
/// go on. `again` as in next_poll_fast().
template <class Again>
[[gnu::always_inline]] inline int start_poll_alone_fast(Cq& cq, const ibv_poll_cq_attr* attr,
                                                        Again again) noexcept {
  if (const int error = begin_poll(cq, attr); error != 0) [[unlikely]]
    return error;
  return again(cq);
}

template <bool kAlone>
[[gnu::always_inline]] inline void end_poll_fast(Cq& cq) noexcept {
  const bool kept = cq.cursor.has_more();
  if (kept != cq.cursor_has_kept()) [[unlikely]]
    note_kept(cq, kept);
  if constexpr (!kAlone) cq.cursor.lock.unlock();
}

}  // namespace verbatim::shm
