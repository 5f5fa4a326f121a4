// SPDX-License-Identifier: BSD-2-Clause
//
// The table of transitions of a queue pair as IBTA 11.2.5.2 and man ibv_modify_qp have it, apart
// from the library's own (runtime/verbs/software/qp_transitions.hpp), so that a slip in either copy
// shows.
#pragma once

#include <infiniband/verbs.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace verbatim::harness {

/// Bits of ibv_qp_attr_mask, beside IBV_QP_STATE.
struct Need {
  int required = 0;
  int optional = 0;
};

inline constexpr ibv_qp_state kQpStates[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
                                             IBV_QPS_SQD,   IBV_QPS_SQE,  IBV_QPS_ERR};

inline constexpr ibv_qp_type kQpTypes[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND,
                                           IBV_QPT_XRC_RECV};

/// Which transitions a type has, and what they take.
std::map<std::pair<ibv_qp_state, ibv_qp_state>, Need> transitions_of(ibv_qp_type type);
/// What a type has no use for, and each of its transitions takes all the same: of an XRC connection
/// what only the other half has (Linux: drivers/infiniband/core/uverbs_cmd.c, modify_qp).
int ignored_of(ibv_qp_type type);
/// Every attribute but the state, by its bit.
const std::map<int, std::string>& attribute_names();
std::vector<int> bits_of(int mask);

}  // namespace verbatim::harness
