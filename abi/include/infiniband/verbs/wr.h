// SPDX-License-Identifier: BSD-2-Clause
//
// Work requests: what a program asks a queue to do. Lists of them are linked by `next`.
// Part of <infiniband/verbs.h>; usable alone.
// Source: IBTA 10.8, 11.4.1; man ibv_post_send, ibv_post_recv, ibv_post_srq_ops.
#ifndef INFINIBAND_VERBS_WR_H
#define INFINIBAND_VERBS_WR_H

#include <infiniband/verbs/base.h>
#include <infiniband/verbs/mw.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ibv_wr_opcode {
  IBV_WR_RDMA_WRITE = 0,
  IBV_WR_RDMA_WRITE_WITH_IMM = 1,
  IBV_WR_SEND = 2,
  IBV_WR_SEND_WITH_IMM = 3,
  IBV_WR_RDMA_READ = 4,
  IBV_WR_ATOMIC_CMP_AND_SWP = 5,
  IBV_WR_ATOMIC_FETCH_AND_ADD = 6,
  IBV_WR_LOCAL_INV = 7,
  IBV_WR_BIND_MW = 8,
  IBV_WR_SEND_WITH_INV = 9,
  IBV_WR_TSO = 10,
  IBV_WR_DRIVER1 = 11,
  IBV_WR_FLUSH = 14,
  IBV_WR_ATOMIC_WRITE = 15,
};

/// A readable name; never NULL; static storage.
const char* ibv_wr_opcode_str(enum ibv_wr_opcode opcode);

enum ibv_send_flags {
  IBV_SEND_FENCE = 1 << 0,      // start only after earlier reads and atomics are done
  IBV_SEND_SIGNALED = 1 << 1,   // complete visibly, also on success
  IBV_SEND_SOLICITED = 1 << 2,  // wake a receiver that waits for solicited events
  IBV_SEND_INLINE = 1 << 3,     // copy the data now: the buffers are free on return
  IBV_SEND_IP_CSUM = 1 << 4,
};

/// FLUSH: how far the data must have come.
enum ibv_placement_type {
  IBV_FLUSH_GLOBAL = 1 << 0,      // visible to everybody
  IBV_FLUSH_PERSISTENT = 1 << 1,  // survives loss of power
};

/// FLUSH: of which data.
enum ibv_selectivity_level {
  IBV_FLUSH_RANGE = 0,
  IBV_FLUSH_MR = 1,
};

struct ibv_data_buf {
  void* addr;
  size_t length;
};

/// A piece of local memory: `length` bytes at `addr`, reached by `lkey`.
struct ibv_sge {
  uint64_t addr;
  uint32_t length;
  uint32_t lkey;
};

/// Several descriptors; no verb takes it, programs of vendors' own verbs name it.
struct ibv_fd_arr {
  int* arr;
  uint32_t count;
};

/// A request for a send queue; the opcode says which members are meant.
struct ibv_send_wr {
  uint64_t wr_id;  // the caller's; comes back in the completion
  struct ibv_send_wr* next;
  struct ibv_sge* sg_list;
  int num_sge;
  enum ibv_wr_opcode opcode;
  unsigned int send_flags;  // enum ibv_send_flags
  __extension__ union {
    __be32 imm_data;           // *_WITH_IMM: network byte order
    uint32_t invalidate_rkey;  // *_INV
  };
  union {
    struct {
      uint64_t remote_addr;
      uint32_t rkey;
    } rdma;
    struct {
      uint64_t remote_addr;  // a multiple of 8
      uint64_t compare_add;  // what to compare with, or to add
      uint64_t swap;
      uint32_t rkey;
    } atomic;
    struct {
      struct ibv_ah* ah;
      uint32_t remote_qpn;
      uint32_t remote_qkey;
    } ud;
  } wr;
  union {
    struct {
      uint32_t remote_srqn;
    } xrc;
  } qp_type;
  __extension__ union {
    struct {
      struct ibv_mw* mw;
      uint32_t rkey;
      struct ibv_mw_bind_info bind_info;
    } bind_mw;
    struct {
      void* hdr;
      uint16_t hdr_sz;  // bytes
      uint16_t mss;     // bytes
    } tso;
  };
};

/// A request for a receive queue: where the next message goes.
struct ibv_recv_wr {
  uint64_t wr_id;
  struct ibv_recv_wr* next;
  struct ibv_sge* sg_list;
  int num_sge;
};

enum ibv_ops_wr_opcode {
  IBV_WR_TAG_ADD = 0,
  IBV_WR_TAG_DEL = 1,
  IBV_WR_TAG_SYNC = 2,
};

enum ibv_ops_flags {
  IBV_OPS_SIGNALED = 1 << 0,
  IBV_OPS_TM_SYNC = 1 << 1,
};

/// A request that edits the tag list of a tag-matching shared receive queue.
struct ibv_ops_wr {
  uint64_t wr_id;
  struct ibv_ops_wr* next;
  enum ibv_ops_wr_opcode opcode;
  int flags;  // enum ibv_ops_flags
  struct {
    uint32_t unexpected_cnt;
    uint32_t handle;  // of the entry: given by TAG_ADD, taken by TAG_DEL
    struct {
      uint64_t recv_wr_id;
      struct ibv_sge* sg_list;
      int num_sge;
      uint64_t tag;
      uint64_t mask;
    } add;
  } tm;
};

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_WR_H
