// SPDX-License-Identifier: BSD-2-Clause
//
// A shared receive queue: many queue pairs take from one store, in the order of posting, when they
// poll a message. The messages themselves lie in each connection's own ring until then.
//
// When does a sender's SEND complete? When it lies in the ring, as with a queue of one's own; and
// it may lie there if the sender sees a receive posted beyond those that its own untaken messages
// will use up. So one sender meets RNR exactly when a HCA's would. Several senders may count on
// the same receive: then all complete, none is lost, and those that find none are delivered when
// the next receives are posted.
//
// Lock order: a CQ's lock < the queue's lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "providers/shm/queues/qp.hpp"
#include "runtime/base/cache_line.hpp"
#include "runtime/sync/biased_lock.hpp"
#include "runtime/verbs/handles.hpp"
#include "runtime/verbs/software/soft_events.hpp"

namespace verbatim::shm {

/// A queue for `max_wr` receives, and its end. nullptr: no memory.
Srq* make_srq(std::uint32_t max_wr, std::uint32_t max_sge, std::uint32_t pd,
              const QueueMemory& memory) noexcept;
void free_srq(Srq& srq) noexcept;
/// In a forked child: whoever had their locks was a thread of the parent's, and posts are refused.
void retire_shared_queues_in_child() noexcept;
/// Forgets what is posted.
void empty_srq(Srq& srq) noexcept;
/// Receives that are posted and not taken. The queue's lock is held.
inline std::uint64_t waiting(const Srq& srq) noexcept {
  return srq.posted - srq.own->taken.load(std::memory_order_relaxed);
}

/// Takes the oldest receive for a message of `qp`. False: there is none; whoever posts the next
/// announces it. The receive CQ's lock is held.
bool take_receive(Qp& qp, TakenReceive& out) noexcept;
/// Room for `capacity` (a power of two) receives that are held, empty; free() it. nullptr: no
/// memory.
HeldReceive* make_held(std::uint32_t capacity) noexcept;
/// Is there a receive to be taken? False also makes the next post announce.
bool has_receive(Srq& srq) noexcept;

/// For the verbs that change it (runtime/verbs/software/shared_receives.hpp).
int resize(Srq& srq, std::uint32_t max_wr) noexcept;
SoftEvents& events_of(const Srq& srq) noexcept;

}  // namespace verbatim::shm
