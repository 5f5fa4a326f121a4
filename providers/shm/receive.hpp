// SPDX-License-Identifier: BSD-2-Clause
//
// The cold side of receiving. Under the receive CQ's lock unless said otherwise.
#pragma once

#include "providers/shm/qp.hpp"

namespace verbatim::shm {

/// Finds the peer's ring. False: there is none for this session (yet).
bool attach_receiver(Qp& qp) noexcept;
/// The same of a QP in RTR to which a sender may have come: whatever it sends first, the connection
/// stands (IBTA 11.6.3.2). Takes the lock. REQUIRES: live.mutex or the send lock.
void greet_sender(Qp& qp) noexcept;
void detach_receiver(Qp& qp) noexcept;

/// Takes what there is for `qp`: messages, then, in the error state, flushes. Entries written;
/// `more` when there was no room for all.
int take_all(Qp& qp, int room, ibv_wc* wc, bool& more) noexcept;
/// For an application that does not poll: copies what lies in the peer's window into the posted
/// receives, some pieces at a time; completions wait for the poll. Service thread, CQ's lock not
/// held. Bytes copied.
std::uint64_t pull_messages(Qp& qp) noexcept;
/// Is a message that can be completed (or a flush) waiting?
bool has_message(Qp& qp) noexcept;
/// The same also while the shared queue has no receive for it.
bool holds_message(Qp& qp) noexcept;
/// Room for `capacity` (a power of two) receives that are held, empty; free() it. nullptr: no
/// memory.
HeldReceive* make_held(std::uint32_t capacity) noexcept;
/// In the error state, with nothing left to take: says once that the shared queue loses no receive
/// to `qp` any more (IBTA 11.6.3.3, last WQE reached).
void say_last_receive(Qp& qp) noexcept;

}  // namespace verbatim::shm
