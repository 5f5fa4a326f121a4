// SPDX-License-Identifier: BSD-2-Clause
//
// Which posted receive a message goes to, and where in our memory that is. A receive of a shared
// queue is taken when its message is first looked at, and held until the message is whole.
//
// Under the receive CQ's lock.
#pragma once

#include "providers/shm/memory/local_range.hpp"
#include "providers/shm/receive/receive_fast.hpp"

namespace verbatim::shm {

/// Finds the receive of message `index`, in `scratch` if it was taken from the shared queue just
/// now. False: none is posted.
bool receive_for(Qp& qp, std::uint64_t index, TakenReceive& scratch, Receive& out) noexcept;
/// The message is not whole yet: a receive that was taken for it stays with it.
void hold(Qp& qp, std::uint64_t index, const TakenReceive& taken) noexcept;
/// Makes room to hold the receives of all messages from the first not completed to `index`.
bool can_hold(Qp& qp, std::uint64_t index) noexcept;

/// What a message of `bytes` takes of the receive, as ranges of our memory: nobody asks what its
/// keys say of the rest. A status other than SUCCESS: it cannot take it.
ibv_wc_status receive_ranges(const Qp& qp, const Receive& receive, std::uint64_t bytes,
                             LocalRange* out) noexcept;

/// The message, which took so many lines unless it was kept in a pack, is done with.
inline void finish_message(Qp& qp, std::uint64_t index, std::uint32_t lines) noexcept {
  if (qp.srq != nullptr) {
    if (HeldReceive* held = held_for(qp, index); held != nullptr) {
      held->index = HeldReceive::kNone;
      --qp.in.held_count;
    }
    qp.rq.tail.store(index + 1, std::memory_order_relaxed);  // never a receive of its own
  }
  finish_receive(qp, index, qp.in.line + (qp.in.pack.has(index) ? 0 : lines));
}

}  // namespace verbatim::shm
