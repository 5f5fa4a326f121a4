// SPDX-License-Identifier: BSD-2-Clause
//
// Tier D, requester's side: WRITEs, READs and atomics that only the process which owns the memory
// can perform. They stand in a ring in our segment, up to RequestRing::kRequests of them, so that
// what waits is served in one wake-up; the bytes of WRITEs and READs flow through two stream rings,
// ours and the responder's. Nobody waits for an answer: the requester comes back when its queue is
// moved on. Of the send queue the requests under way are the first ones.
//
// Who serves them: request_service.hpp.
#pragma once

#include <cstdint>

#include "providers/shm/transfer/reach.hpp"
#include "providers/shm/transfer/send_queue.hpp"

namespace verbatim::shm {

// The send lock is held. kService: under way; kDone: all of it is done.

/// The request at the head of the queue has been given out: nothing else decides about it any more.
inline bool is_asked(const Qp& qp) noexcept { return qp.asking.asked != qp.asking.ended; }
/// Nobody wants to know what becomes of those that are under way.
inline void forget_asked(Qp& qp) noexcept { qp.asking.ended = qp.asking.asked; }

/// Moves the bytes of the WRITE or READ at the head.
Reach ask_to_move(Qp& qp, SendLock& lock, const PendingSend& send, const LocalRange* local,
                  bool read) noexcept;
/// `operand`: what is compared, added or (ATOMIC_WRITE) written.
Reach ask_for_atomic(Qp& qp, const PendingSend& send, std::uint64_t operand,
                     std::uint64_t& old) noexcept;
/// Gives out those behind a head that is under way, as far as there is room.
void ask_ahead(Qp& qp, SendLock& lock) noexcept;

}  // namespace verbatim::shm
