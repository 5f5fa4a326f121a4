// SPDX-License-Identifier: BSD-2-Clause
//
// How a queue pair is made and what can be changed about it: types, capacities, states, attributes.
// Part of <infiniband/verbs.h>; usable alone. Source: IBTA 10.3 (states), 11.2.4; man
// ibv_create_qp, ibv_create_qp_ex, ibv_modify_qp.
#ifndef INFINIBAND_VERBS_QP_ATTR_H
#define INFINIBAND_VERBS_QP_ATTR_H

#include <infiniband/verbs/ah.h>
#include <infiniband/verbs/base.h>
#include <infiniband/verbs/port.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ibv_qp_type {
  IBV_QPT_RC = 2,
  IBV_QPT_UC = 3,
  IBV_QPT_UD = 4,
  IBV_QPT_RAW_PACKET = 8,
  IBV_QPT_XRC_SEND = 9,
  IBV_QPT_XRC_RECV = 10,
  IBV_QPT_DRIVER = 0xff,
};

/// Whether a capability word of QP types, as in ibv_tso_caps, names `qpt`.
static inline int ibv_is_qpt_supported(uint32_t caps, enum ibv_qp_type qpt) {
  return (caps & (1U << VBT_VALUE_CAST_(unsigned int, qpt))) != 0;
}

struct ibv_qp_cap {
  uint32_t max_send_wr;
  uint32_t max_recv_wr;
  uint32_t max_send_sge;
  uint32_t max_recv_sge;
  uint32_t max_inline_data;  // bytes
};

struct ibv_qp_init_attr {
  void* qp_context;
  struct ibv_cq* send_cq;
  struct ibv_cq* recv_cq;
  struct ibv_srq* srq;    // or NULL
  struct ibv_qp_cap cap;  // at least; the real size is written back
  enum ibv_qp_type qp_type;
  int sq_sig_all;  // not 0: every send completes visibly
};

enum ibv_qp_init_attr_mask {
  IBV_QP_INIT_ATTR_PD = 1 << 0,
  IBV_QP_INIT_ATTR_XRCD = 1 << 1,
  IBV_QP_INIT_ATTR_CREATE_FLAGS = 1 << 2,
  IBV_QP_INIT_ATTR_MAX_TSO_HEADER = 1 << 3,
  IBV_QP_INIT_ATTR_IND_TABLE = 1 << 4,
  IBV_QP_INIT_ATTR_RX_HASH = 1 << 5,
  IBV_QP_INIT_ATTR_SEND_OPS_FLAGS = 1 << 6,
};

enum ibv_qp_create_flags {
  IBV_QP_CREATE_BLOCK_SELF_MCAST_LB = 1 << 1,
  IBV_QP_CREATE_SCATTER_FCS = 1 << 8,
  IBV_QP_CREATE_CVLAN_STRIPPING = 1 << 9,
  IBV_QP_CREATE_SOURCE_QPN = 1 << 10,
  IBV_QP_CREATE_PCI_WRITE_END_PADDING = 1 << 11,
};

/// Operations that will be built with ibv_wr_*; others must not be.
enum ibv_qp_create_send_ops_flags {
  IBV_QP_EX_WITH_RDMA_WRITE = 1 << 0,
  IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM = 1 << 1,
  IBV_QP_EX_WITH_SEND = 1 << 2,
  IBV_QP_EX_WITH_SEND_WITH_IMM = 1 << 3,
  IBV_QP_EX_WITH_RDMA_READ = 1 << 4,
  IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP = 1 << 5,
  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD = 1 << 6,
  IBV_QP_EX_WITH_LOCAL_INV = 1 << 7,
  IBV_QP_EX_WITH_BIND_MW = 1 << 8,
  IBV_QP_EX_WITH_SEND_WITH_INV = 1 << 9,
  IBV_QP_EX_WITH_TSO = 1 << 10,
  IBV_QP_EX_WITH_FLUSH = 1 << 11,
  IBV_QP_EX_WITH_ATOMIC_WRITE = 1 << 12,
};

struct ibv_rx_hash_conf {
  uint8_t rx_hash_function;  // enum ibv_rx_hash_function_flags
  uint8_t rx_hash_key_len;   // bytes
  uint8_t* rx_hash_key;
  uint64_t rx_hash_fields_mask;  // enum ibv_rx_hash_fields
};

/// Begins like ibv_qp_init_attr, so that the simple case may be handed on as one.
struct ibv_qp_init_attr_ex {
  void* qp_context;
  struct ibv_cq* send_cq;
  struct ibv_cq* recv_cq;
  struct ibv_srq* srq;
  struct ibv_qp_cap cap;
  enum ibv_qp_type qp_type;
  int sq_sig_all;
  uint32_t comp_mask;  // enum ibv_qp_init_attr_mask: which members below are set
  struct ibv_pd* pd;
  struct ibv_xrcd* xrcd;
  uint32_t create_flags;    // enum ibv_qp_create_flags
  uint16_t max_tso_header;  // bytes
  struct ibv_rwq_ind_table* rwq_ind_tbl;
  struct ibv_rx_hash_conf rx_hash_conf;
  uint32_t source_qpn;
  uint64_t send_ops_flags;  // enum ibv_qp_create_send_ops_flags
};

enum ibv_qp_open_attr_mask {
  IBV_QP_OPEN_ATTR_NUM = 1 << 0,
  IBV_QP_OPEN_ATTR_XRCD = 1 << 1,
  IBV_QP_OPEN_ATTR_CONTEXT = 1 << 2,
  IBV_QP_OPEN_ATTR_TYPE = 1 << 3,
  IBV_QP_OPEN_ATTR_RESERVED = 1 << 4,
};

struct ibv_qp_open_attr {
  uint32_t comp_mask;  // enum ibv_qp_open_attr_mask: which members below are set
  uint32_t qp_num;
  struct ibv_xrcd* xrcd;
  void* qp_context;
  enum ibv_qp_type qp_type;
};

/// Bits 21 to 24 belong to the kernel.
enum ibv_qp_attr_mask {
  IBV_QP_STATE = 1 << 0,
  IBV_QP_CUR_STATE = 1 << 1,
  IBV_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
  IBV_QP_ACCESS_FLAGS = 1 << 3,
  IBV_QP_PKEY_INDEX = 1 << 4,
  IBV_QP_PORT = 1 << 5,
  IBV_QP_QKEY = 1 << 6,
  IBV_QP_AV = 1 << 7,
  IBV_QP_PATH_MTU = 1 << 8,
  IBV_QP_TIMEOUT = 1 << 9,
  IBV_QP_RETRY_CNT = 1 << 10,
  IBV_QP_RNR_RETRY = 1 << 11,
  IBV_QP_RQ_PSN = 1 << 12,
  IBV_QP_MAX_QP_RD_ATOMIC = 1 << 13,
  IBV_QP_ALT_PATH = 1 << 14,
  IBV_QP_MIN_RNR_TIMER = 1 << 15,
  IBV_QP_SQ_PSN = 1 << 16,
  IBV_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
  IBV_QP_PATH_MIG_STATE = 1 << 18,
  IBV_QP_CAP = 1 << 19,
  IBV_QP_DEST_QPN = 1 << 20,
  IBV_QP_RATE_LIMIT = 1 << 25,
};

enum ibv_qp_state {
  IBV_QPS_RESET = 0,
  IBV_QPS_INIT = 1,
  IBV_QPS_RTR = 2,
  IBV_QPS_RTS = 3,
  IBV_QPS_SQD = 4,
  IBV_QPS_SQE = 5,
  IBV_QPS_ERR = 6,
  IBV_QPS_UNKNOWN = 7,
};

enum ibv_mig_state {
  IBV_MIG_MIGRATED = 0,
  IBV_MIG_REARM = 1,
  IBV_MIG_ARMED = 2,
};

struct ibv_qp_attr {
  enum ibv_qp_state qp_state;
  enum ibv_qp_state cur_qp_state;
  enum ibv_mtu path_mtu;
  enum ibv_mig_state path_mig_state;
  uint32_t qkey;
  uint32_t rq_psn;  // 24 bits
  uint32_t sq_psn;  // 24 bits
  uint32_t dest_qp_num;
  unsigned int qp_access_flags;  // enum ibv_access_flags
  struct ibv_qp_cap cap;
  struct ibv_ah_attr ah_attr;
  struct ibv_ah_attr alt_ah_attr;
  uint16_t pkey_index;
  uint16_t alt_pkey_index;
  uint8_t en_sqd_async_notify;
  uint8_t sq_draining;
  uint8_t max_rd_atomic;       // reads and atomics under way from here
  uint8_t max_dest_rd_atomic;  // and towards here
  uint8_t min_rnr_timer;       // a code, not a time: IBTA 9.7.5.2.8
  uint8_t port_num;
  uint8_t timeout;    // n: 4.096 us * 2^n; 0: wait for ever
  uint8_t retry_cnt;  // 3 bits
  uint8_t rnr_retry;  // 3 bits; 7: for ever
  uint8_t alt_port_num;
  uint8_t alt_timeout;
  uint32_t rate_limit;  // kbit/s
};

struct ibv_qp_rate_limit_attr {
  uint32_t rate_limit;      // kbit/s
  uint32_t max_burst_sz;    // bytes
  uint16_t typical_pkt_sz;  // bytes
  uint32_t comp_mask;
};

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_QP_ATTR_H
