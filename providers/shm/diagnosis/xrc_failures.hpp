// SPDX-License-Identifier: BSD-2-Clause
//
// Of XRC, where a request has three ends: the queue that it goes to, and why it does not get there
// (failures.hpp). Any thread; waits for nothing.
#pragma once

#include <cstdint>

#include "runtime/verbs/failure.hpp"

namespace verbatim::shm {

struct Qp;

/// Says in `failure` which queue it is, and which process has it, if that is known.
void name_queue(Failure& failure, std::uint32_t srqn) noexcept;
/// What keeps the queue from taking requests of `qp`, whose connection is well.
Cause judge_queue(const Qp& qp, std::uint32_t srqn) noexcept;

}  // namespace verbatim::shm
