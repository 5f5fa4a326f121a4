// SPDX-License-Identifier: BSD-2-Clause
//
// The rings of a completion queue that are polled directly: which become so, and when they go back to
// their doorbells.
#pragma once

#include "providers/shm/queues/qp.hpp"

namespace verbatim::shm {

/// Makes a busy ring polled directly, if there is room or a silent one to cool. REQUIRES: cq.lock.
void heat(Cq& cq, Qp& qp) noexcept;
/// Back to doorbells: the hot rings that have brought nothing since the last time; but one stays,
/// which may be the one that the application is waiting for. Returns how many messages all of them
/// have brought since. REQUIRES: cq.lock.
std::uint64_t cool_silent(Cq& cq) noexcept;
/// Back to doorbells: all of them. REQUIRES: cq.lock.
void cool_all(Cq& cq) noexcept;
/// Forgets the hot ring at `i`: its sender has left, or is about to be told to ring.
[[gnu::cold, gnu::noinline]] void drop_hot(Cq& cq, std::uint32_t i) noexcept;

}  // namespace verbatim::shm
