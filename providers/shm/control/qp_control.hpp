// SPDX-License-Identifier: BSD-2-Clause
//
// The verbs that lead a queue pair from state to state, and its end. A kind of queue pair for which
// they mean something else says so (qp_kind.hpp).
#pragma once

#include "providers/shm/queues/qp.hpp"

namespace verbatim::shm {

// The plug's slots.
int modify_qp(verbatim::Qp& qp, ibv_qp_attr& attr, int mask) noexcept;
int query_qp(verbatim::Qp& qp, ibv_qp_attr& attr, int mask, ibv_qp_init_attr& init) noexcept;
int destroy_qp(verbatim::Qp& qp) noexcept;

/// The two halves of destroy_qp(), around the end of its events. EBUSY: a peer was stopped in the
/// middle of a copy.
int end_qp(Qp& qp) noexcept;
void retire_ended(Qp& qp) noexcept;

}  // namespace verbatim::shm
