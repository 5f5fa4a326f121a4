// SPDX-License-Identifier: BSD-2-Clause
//
// How the two halves of a connection find each other, and part. Neither asks the other: each reads
// the other's record and sees whether it names it back, so a process that sleeps is connected to
// all the same.
#pragma once

#include "providers/shm/queues/meet.hpp"

namespace verbatim::shm {

/// `peer` has become known as the owner of the other half, maybe in place of somebody else who had
/// been believed to be. REQUIRES: live.mutex.
void meet_again(Qp& qp, const Peer& peer) noexcept;

// The sending half. The send lock is held.

/// Finds the peer's half. kNothing: attached; else what to wait for.
Wait attach(Qp& qp) noexcept;
/// Looks where the peer's own receives stand. True: elsewhere than was known. REQUIRES: attached.
bool find_receives(Qp& qp) noexcept;
/// Forgets the peer's half and gives back what it read from. REQUIRES: not unread().
void detach(Qp& qp) noexcept;
/// Has the peer still to take messages that we sent, or to hear that its half must end? Completions
/// have said that they arrived, so they must outlive the QP.
bool unread(const Qp& qp) noexcept;

// The receiving half. The receive CQ's lock is held.

/// Finds the peer's ring. False: there is none for this session (yet).
bool attach_receiver(Qp& qp) noexcept;
/// The same of a QP in RTR to which a sender may have come: whatever it sends first, the connection
/// stands (IBTA 11.6.3.2). Takes the lock. REQUIRES: live.mutex or the send lock.
void greet_sender(Qp& qp) noexcept;
void detach_receiver(Qp& qp) noexcept;

}  // namespace verbatim::shm
