// SPDX-License-Identifier: BSD-2-Clause
//
// A request that cannot be performed now: how long it waits, and what its wait ends in. Under the
// send lock. All of it by the clock of waits (runtime/time/wait_clock.hpp): nobody is blamed for what
// we have not read, nor for the time that we were away. How long a wait is:
// runtime/verbs/software/retry.hpp; of unreliable connections: IBTA 9.8.2.
#pragma once

#include "providers/shm/transfer/send_queue.hpp"
#include "runtime/verbs/software/retry.hpp"

namespace verbatim::shm {

/// The head cannot move: decides whether it may go on waiting.
Step judge_wait(Qp& qp, Wait wait) noexcept;

/// On an unreliable connection a request that cannot be delivered is lost, and done: only what is
/// wrong on our own side is an error. But for processes that are about to meet.
Step lose(Qp& qp, const Step& result) noexcept;

/// Of a wait that is lost at its end, from the first call on until `until` is zero again.
bool waited_too_long(std::uint64_t& until, std::uint64_t patience) noexcept;

inline bool is_dead(const Qp& qp) noexcept {
  return qp.link.peer != nullptr && !qp.link.peer->alive.load(std::memory_order_acquire);
}

}  // namespace verbatim::shm
