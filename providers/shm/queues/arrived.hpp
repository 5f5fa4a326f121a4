// SPDX-License-Identifier: BSD-2-Clause
//
// Whether something has come for a queue pair that a poll would take. Under the receive CQ's lock.
#pragma once

#include "providers/shm/queues/qp.hpp"

namespace verbatim::shm {

/// Is a message that can be completed (or a flush) waiting?
bool has_message(Qp& qp) noexcept;
/// The same also while the shared queue has no receive for it.
bool holds_message(Qp& qp) noexcept;
/// In the error state, with nothing left to take: says once that the shared queue loses no receive
/// to `qp` any more (IBTA 11.6.3.3, last WQE reached).
void say_last_receive(Qp& qp) noexcept;
/// The sender may be in the middle of something that we had accepted before our error; also when it
/// has met us and our service thread is still busy connecting to it.
bool sender_is_busy(Qp& qp) noexcept;

}  // namespace verbatim::shm
