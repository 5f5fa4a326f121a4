// SPDX-License-Identifier: BSD-2-Clause
//
// What is stored in a completion queue, and the events that an armed one raises.
#pragma once

#include "providers/shm/queues/qp.hpp"
#include "runtime/verbs/software/completion_ring.hpp"

namespace verbatim::shm {

/// Stores a completion. REQUIRES: cq.lock held. An overrun is counted, raises CQ_ERR once and never
/// overwrites what is stored.
inline void push_locked(Cq& cq, const Completion& completion) noexcept;

// The plug's slot.
int req_notify_cq(ibv_cq* cq, int solicited_only) noexcept;

/// Tells the CQ that `qp` has receive completions to give that its peer will not announce
/// (flushes).
void announce(Qp& qp) noexcept;
/// A completion was stored, messages have come: raises the CQ's event if it is armed for this kind
/// and the event is not held back. An error counts as solicited. REQUIRES: cq.lock held.
void tell_stored_locked(Cq& cq, bool failed) noexcept;
void tell_announced_locked(Cq& cq, bool solicited) noexcept;
/// Makes the event that a whole message of `qp` owes, if it does; of an unfinished one its sender
/// tells at the end. REQUIRES: cq.lock, has_message(qp).
void tell_of_locked(Cq& cq, const Qp& qp) noexcept;

/// Room for the times of `count` completions; nullptr: no memory.
CompletionTime* make_times(const Cq& cq, std::size_t count) noexcept;
[[gnu::cold]] void report_overrun_locked(Cq& cq) noexcept;
/// The time now, by the clocks that were asked for.
CompletionTime completion_time(const Cq& cq) noexcept;
/// Takes the time of stored completion number `index`. REQUIRES: cq.lock held, cq.times.
[[gnu::cold]] void stamp_stored(Cq& cq, std::uint32_t index) noexcept;

inline void push_locked(Cq& cq, const Completion& completion) noexcept {
  std::uint32_t number;
  if (!completions::store(cq, completion, number)) [[unlikely]] {
    report_overrun_locked(cq);
    return;
  }
  if (cq.times != nullptr) [[unlikely]]
    stamp_stored(cq, number);
  if (cq.armed->load(std::memory_order_relaxed) != CqRecord::kIdle) [[unlikely]]
    tell_stored_locked(cq, completion.status != IBV_WC_SUCCESS);
}

}  // namespace verbatim::shm
