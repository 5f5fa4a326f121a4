// SPDX-License-Identifier: BSD-2-Clause
// A queue pair through its states by the verb itself, for programs that go there again and again
// and look at what the verb answers.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace verbatim::harness {

inline constexpr int kEveryRight = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

/// Where it leads, and how long it tries.
struct RcWay {
  std::uint32_t remote_qpn = 0;
  std::uint16_t remote_lid = 1;
  std::uint32_t rq_psn = 7;
  std::uint32_t sq_psn = 7;
  int access = kEveryRight;
  std::uint8_t timeout = 12;
  std::uint8_t retry_count = 1;
  std::uint8_t rnr_retry = 1;
  std::uint8_t min_rnr_timer = 1;
};

/// ibv_modify_qp with all that the state needs. An errno.
inline int modify_rc(ibv_qp* qp, ibv_qp_state state, const RcWay& way = {}) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  attr.port_num = 1;
  attr.qp_access_flags = static_cast<unsigned>(way.access);
  attr.path_mtu = IBV_MTU_4096;
  attr.dest_qp_num = way.remote_qpn;
  attr.rq_psn = way.rq_psn;
  attr.sq_psn = way.sq_psn;
  attr.max_rd_atomic = attr.max_dest_rd_atomic = 4;
  attr.min_rnr_timer = way.min_rnr_timer;
  attr.ah_attr.dlid = way.remote_lid;
  attr.ah_attr.port_num = 1;
  attr.timeout = way.timeout;
  attr.retry_cnt = way.retry_count;
  attr.rnr_retry = way.rnr_retry;
  int mask = IBV_QP_STATE;
  if (state == IBV_QPS_INIT) mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  if (state == IBV_QPS_RTR)
    mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (state == IBV_QPS_RTR && qp->qp_type == IBV_QPT_XRC_SEND)  // answers nothing
    mask &= ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (state == IBV_QPS_RTS)
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
            IBV_QP_MAX_QP_RD_ATOMIC;
  return ibv_modify_qp(qp, &attr, mask);
}

}  // namespace verbatim::harness
