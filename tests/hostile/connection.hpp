// SPDX-License-Identifier: BSD-2-Clause
// A queue pair through its states, for programs that do so again and again.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace verbatim::hostile {

inline constexpr int kAllRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

/// ibv_modify_qp with all that the state needs. An errno.
inline int modify(ibv_qp* qp, ibv_qp_state state, std::uint32_t remote_qpn = 0) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  attr.port_num = 1;
  attr.qp_access_flags = kAllRights;
  attr.path_mtu = IBV_MTU_4096;
  attr.dest_qp_num = remote_qpn;
  attr.rq_psn = attr.sq_psn = 7;
  attr.max_rd_atomic = attr.max_dest_rd_atomic = 4;
  attr.min_rnr_timer = 1;
  attr.ah_attr.dlid = 1;
  attr.ah_attr.port_num = 1;
  attr.timeout = 12;
  attr.retry_cnt = 1;
  attr.rnr_retry = 1;
  int mask = IBV_QP_STATE;
  if (state == IBV_QPS_INIT) mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  if (state == IBV_QPS_RTR)
    mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (state == IBV_QPS_RTS)
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
            IBV_QP_MAX_QP_RD_ATOMIC;
  return ibv_modify_qp(qp, &attr, mask);
}

}  // namespace verbatim::hostile
