// SPDX-License-Identifier: BSD-2-Clause
//
// Which queue pairs take a completion queue as their receive queue's.
#pragma once

#include "providers/shm/queues/qp.hpp"

namespace verbatim::shm {

/// Called when a QP takes this CQ as its receive CQ, and when it leaves it.
int add_member(Cq& cq, Qp& qp) noexcept;
void remove_member(Cq& cq, Qp& qp) noexcept;
/// Forgets stored completions of a QP that is reset or destroyed.
void forget_completions(Cq& cq, const Qp& qp) noexcept;

}  // namespace verbatim::shm
