// SPDX-License-Identifier: BSD-2-Clause
// The QP state machine as data: for each transition and QP type, the attributes that modify_qp must
// and may be given. Spec: IBTA 11.2.5.2 (table of transitions), man ibv_modify_qp; where they leave
// room, what Linux drivers accept, since programs are written against those.
#pragma once

#include <infiniband/verbs.h>

#include <span>

namespace verbatim {

/// A bit set of QP types, since most rows hold for several.
enum QpTypes : unsigned {
  kRc = 1u << 0,
  kUc = 1u << 1,
  kUd = 1u << 2,
  kXrcSend = 1u << 3,
  kXrcRecv = 1u << 4,
  kRaw = 1u << 5,
  kAnyQp = (1u << 6) - 1,
};

struct QpTransition {
  ibv_qp_state from;
  ibv_qp_state to;
  unsigned types;  ///< QpTypes
  int required;    ///< ibv_qp_attr_mask, without IBV_QP_STATE
  int optional;
};

/// Every allowed transition; a type has at most one row per pair of states.
[[nodiscard]] std::span<const QpTransition> qp_transitions() noexcept;

/// The bit of a QP type, 0 for one that the table does not speak of.
[[nodiscard]] unsigned qp_type_bit(ibv_qp_type type) noexcept;

/// The row for this transition of this type, or null: not allowed.
[[nodiscard]] const QpTransition* find_qp_transition(ibv_qp_type type, ibv_qp_state from,
                                                     ibv_qp_state to) noexcept;

}  // namespace verbatim
