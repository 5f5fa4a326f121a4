// SPDX-License-Identifier: BSD-2-Clause
//
// The end of queue pairs. What a peer has yet to take of one that is destroyed outlives it: such a one
// is parked, with its number, until the peer has taken it.
#pragma once

#include "providers/shm/queues/qp.hpp"

namespace verbatim::shm {

/// The record as it is while nothing is accepted.
void reset_record(Qp& qp) noexcept;
/// Gives back what the queues of a QP that has ended took of memory.
void free_queues(Qp& qp) noexcept;
/// Gives back what only we know of. REQUIRES: no list has it any more.
void free_qp(Qp& qp) noexcept;

/// Gives a queue pair that is in no list back, at once or when the peer has taken what it sent.
/// REQUIRES: live.mutex.
void park(Qp& qp) noexcept;
/// Destroyed QPs whose messages have been taken by now are given back.
void retire_parked() noexcept;
/// The process leaves the fabric: what peers have yet to take stays readable in their mappings.
void forget_parked() noexcept;

}  // namespace verbatim::shm
