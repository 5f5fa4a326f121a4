// SPDX-License-Identifier: BSD-2-Clause
//
// ibv_start_poll, ibv_next_poll, ibv_end_poll: the queue seen through a cursor.
//
// From start to end the cursor belongs to one thread (its own lock); the queue's lock is taken for
// each completion only. So a program may post, poll and destroy in between, as it may with an
// adapter, and the service thread never waits for a program that thinks about a completion.
#pragma once

#include <cerrno>

#include "providers/shm/poll_fast.hpp"

namespace verbatim::shm {

/// Takes the time for the completion that comes next, of a queue whose program asked for it.
/// REQUIRES: cq.lock.
[[gnu::cold, gnu::noinline]] void stamp_next(Cq& cq) noexcept;

/// Puts the cursor on the next completion, if there is one.
template <bool kStamped>
[[gnu::always_inline]] inline bool step_cursor(Cq& cq) noexcept {
  ibv_wc& wc = cq.cursor.wc;
  bool found;
  bool broken;
  {
    DomainGuard guard(cq.lock, cq.in_domain.load(std::memory_order_relaxed));
    if constexpr (kStamped) stamp_next(cq);
    found = poll_stored(cq, 1, &wc) != 0 || poll_rings(cq, 1, &wc) != 0;
    if (!found && cq.doorbells->summary.load(std::memory_order_relaxed) != 0) [[unlikely]]
      found = poll_doorbells(cq, 1, &wc) != 0;
    broken = cq.has_broken;
  }
  if (broken) [[unlikely]]
    break_marked_qps(cq);
  if (!found) return false;
  cq.extended.status = wc.status;
  cq.extended.wr_id = wc.wr_id;
  return true;
}

/// kAlone: the program has said that one thread at a time uses the queue.
template <bool kStamped, bool kAlone>
[[gnu::always_inline]] inline int start_poll_fast(Cq& cq, const ibv_poll_cq_attr* attr) noexcept {
  if (attr != nullptr && attr->comp_mask != 0) [[unlikely]]
    return EINVAL;
  if (cq.pending_count.load(std::memory_order_relaxed) != 0) [[unlikely]]
    progress_pending(cq, SendLock::As::kUser);
  if (!something_came(cq)) return ENOENT;
  if constexpr (!kAlone) cq.cursor.lock.lock();
  if (step_cursor<kStamped>(cq)) [[likely]]
    return 0;
  if constexpr (!kAlone) cq.cursor.lock.unlock();
  return ENOENT;
}

template <bool kStamped>
[[gnu::always_inline]] inline int next_poll_fast(Cq& cq) noexcept {
  if (!something_came(cq)) return ENOENT;
  return step_cursor<kStamped>(cq) ? 0 : ENOENT;
}

}  // namespace verbatim::shm
