// SPDX-License-Identifier: BSD-2-Clause
//
// How the data path itself changes the state of a queue pair, and tells the program of it.
#pragma once

#include "providers/shm/queues/qp.hpp"

namespace verbatim::shm {

/// Moves the QP to the error state from inside the data path (send lock held or not; never waits):
/// nothing more is accepted from the peer, posted receives flush when polled.
void enter_error(Qp& qp) noexcept;
/// Moves the QP to the send queue error state: what is posted flushes, receiving goes on. The send
/// lock is held.
void stop_sending(Qp& qp) noexcept;

}  // namespace verbatim::shm
