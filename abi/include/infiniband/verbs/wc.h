// SPDX-License-Identifier: BSD-2-Clause
//
// Work completions: how a work request ended. Part of <infiniband/verbs.h>; usable alone.
// Source: IBTA 11.4.2.1 (Poll for Completion); man ibv_poll_cq.
#ifndef INFINIBAND_VERBS_WC_H
#define INFINIBAND_VERBS_WC_H

#include <infiniband/verbs/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ibv_wc_status {
  IBV_WC_SUCCESS = 0,
  IBV_WC_LOC_LEN_ERR = 1,
  IBV_WC_LOC_QP_OP_ERR = 2,
  IBV_WC_LOC_EEC_OP_ERR = 3,
  IBV_WC_LOC_PROT_ERR = 4,
  IBV_WC_WR_FLUSH_ERR = 5,
  IBV_WC_MW_BIND_ERR = 6,
  IBV_WC_BAD_RESP_ERR = 7,
  IBV_WC_LOC_ACCESS_ERR = 8,
  IBV_WC_REM_INV_REQ_ERR = 9,
  IBV_WC_REM_ACCESS_ERR = 10,
  IBV_WC_REM_OP_ERR = 11,
  IBV_WC_RETRY_EXC_ERR = 12,
  IBV_WC_RNR_RETRY_EXC_ERR = 13,
  IBV_WC_LOC_RDD_VIOL_ERR = 14,
  IBV_WC_REM_INV_RD_REQ_ERR = 15,
  IBV_WC_REM_ABORT_ERR = 16,
  IBV_WC_INV_EECN_ERR = 17,
  IBV_WC_INV_EEC_STATE_ERR = 18,
  IBV_WC_FATAL_ERR = 19,
  IBV_WC_RESP_TIMEOUT_ERR = 20,
  IBV_WC_GENERAL_ERR = 21,
  IBV_WC_TM_ERR = 22,
  IBV_WC_TM_RNDV_INCOMPLETE = 23,
};

/// A readable name; never NULL; static storage.
const char* ibv_wc_status_str(enum ibv_wc_status status);

/// What completed. Bit 7 is set in all that happened on a receive queue, and in nothing else.
enum ibv_wc_opcode {
  IBV_WC_SEND = 0,
  IBV_WC_RDMA_WRITE = 1,
  IBV_WC_RDMA_READ = 2,
  IBV_WC_COMP_SWAP = 3,
  IBV_WC_FETCH_ADD = 4,
  IBV_WC_BIND_MW = 5,
  IBV_WC_LOCAL_INV = 6,
  IBV_WC_TSO = 7,
  IBV_WC_FLUSH = 8,
  IBV_WC_ATOMIC_WRITE = 9,
  IBV_WC_RECV = 128,
  IBV_WC_RECV_RDMA_WITH_IMM = 129,
  IBV_WC_TM_ADD = 130,
  IBV_WC_TM_DEL = 131,
  IBV_WC_TM_SYNC = 132,
  IBV_WC_TM_RECV = 133,
  IBV_WC_TM_NO_TAG = 134,
  IBV_WC_DRIVER1 = 135,
  IBV_WC_DRIVER2 = 136,
  IBV_WC_DRIVER3 = 137,
};

enum {
  IBV_WC_IP_CSUM_OK_SHIFT = 2,
};

/// Bits of `ibv_wc.wc_flags`.
enum ibv_wc_flags {
  IBV_WC_GRH = 1 << 0,       // UD: a global route header lies in front of the data
  IBV_WC_WITH_IMM = 1 << 1,  // imm_data is meant
  IBV_WC_IP_CSUM_OK = 1 << IBV_WC_IP_CSUM_OK_SHIFT,
  IBV_WC_WITH_INV = 1 << 3,  // invalidated_rkey is meant
  IBV_WC_TM_SYNC_REQ = 1 << 4,
  IBV_WC_TM_MATCH = 1 << 5,
  IBV_WC_TM_DATA_VALID = 1 << 6,
};

/// One completion. After an error only `wr_id`, `status`, `qp_num` and `vendor_err` mean something.
struct ibv_wc {
  uint64_t wr_id;
  enum ibv_wc_status status;
  enum ibv_wc_opcode opcode;
  uint32_t vendor_err;
  uint32_t byte_len;  // bytes received or read
  __extension__ union {
    __be32 imm_data;  // network byte order
    uint32_t invalidated_rkey;
  };
  uint32_t qp_num;
  uint32_t src_qp;
  unsigned int wc_flags;  // enum ibv_wc_flags
  uint16_t pkey_index;
  uint16_t slid;
  uint8_t sl;
  uint8_t dlid_path_bits;
};

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_WC_H
