// SPDX-License-Identifier: BSD-2-Clause
// The QP state machine of a software provider: which attributes each transition of each QP type
// needs and allows, the ranges of their values, and keeping them. Control code; the caller holds
// whatever orders modify_qp on this QP. Spec: IBTA 10.3.1, 11.2.5.2; man ibv_modify_qp.
//
//   modify_qp:  check_transition -> act on the change (move queues, connect) -> apply_attributes
//   query_qp:   read_attributes
#pragma once

#include "runtime/verbs/handles.hpp"

namespace verbatim {

/// 0 and the states of the transition that `mask` asks for (equal when it does not change), or
/// EINVAL; the log then names the attribute: missing, not allowed here, or with a wrong value.
/// Limits (ports, GID and P_Key tables, MTU, atomics in flight) are asked of the QP's provider.
[[nodiscard]] int check_transition(const Qp& qp, const ibv_qp_attr& attr, int mask,
                                   ibv_qp_state& from, ibv_qp_state& to) noexcept;

/// Keeps the attributes that `mask` names and moves plain.state. REQUIRES: check_transition said 0
/// for them. Moving to RESET forgets all attributes.
void apply_attributes(Qp& qp, const ibv_qp_attr& attr, int mask) noexcept;

/// Everything that was set, the state, and the capacities.
void read_attributes(const Qp& qp, ibv_qp_attr& out) noexcept;

/// "RESET", "INIT" ... "?"; for log lines.
[[nodiscard]] const char* qp_state_name(ibv_qp_state state) noexcept;

}  // namespace verbatim
