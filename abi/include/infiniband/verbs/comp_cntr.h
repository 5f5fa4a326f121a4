// SPDX-License-Identifier: BSD-2-Clause
//
// Completion counters: how many requests of queue pairs have completed, without a word about each.
// Part of <infiniband/verbs.h>; usable alone. Any thread may call these, on the same counter too.
// Source: man ibv_create_comp_cntr, ibv_qp_attach_comp_cntr, ibv_query_comp_cntr_caps (rdma-core
// 65).
#ifndef INFINIBAND_VERBS_COMP_CNTR_H
#define INFINIBAND_VERBS_COMP_CNTR_H

#include <infiniband/verbs/base.h>
#include <infiniband/verbs/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/// What a counter counts of a queue pair: its own requests, its receives, and what its peer reads
/// from and writes to this side.
enum ibv_qp_attach_comp_cntr_op {
  IBV_QP_ATTACH_COMP_CNTR_OP_SEND = 1 << 0,
  IBV_QP_ATTACH_COMP_CNTR_OP_RECV = 1 << 1,
  IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_READ = 1 << 2,
  IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_READ = 1 << 3,
  IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE = 1 << 4,
  IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE = 1 << 5,
};

struct ibv_comp_cntr_caps {
  uint64_t max_value;  // beyond it a count goes on from 0
  uint32_t max_counters;
  uint32_t supported_qp_attach_ops;  // enum ibv_qp_attach_comp_cntr_op
};

/// Two counts of 64 bits: of what completed with success, and of what completed in error.
struct ibv_comp_cntr {
  struct ibv_context* context;
  uint32_t handle;
};

enum ibv_comp_cntr_type {
  IBV_COMP_CNTR_TYPE_WRS = 0,
  IBV_COMP_CNTR_TYPE_BYTES = 1,
};

struct ibv_comp_cntr_init_attr {
  uint32_t comp_mask;  // 0
  enum ibv_comp_cntr_type type;
  uint32_t flags;  // 0
};

struct ibv_qp_attach_comp_cntr_attr {
  uint32_t comp_mask;  // 0
  uint32_t op_mask;    // enum ibv_qp_attach_comp_cntr_op
};

/// The exported function behind ibv_query_comp_cntr_caps: `caps_size` is the caller's.
int _ibv_query_comp_cntr_caps(struct ibv_context* context, struct ibv_comp_cntr_caps* caps,
                              size_t caps_size);

/// 0 or an errno: EOPNOTSUPP where there are no counters.
static inline int ibv_query_comp_cntr_caps(struct ibv_context* context,
                                           struct ibv_comp_cntr_caps* caps) {
  return _ibv_query_comp_cntr_caps(context, caps, sizeof(*caps));
}

/// A new counter, both counts 0; the caller destroys it. NULL + errno: EINVAL, ENOMEM, EOPNOTSUPP.
struct ibv_comp_cntr* ibv_create_comp_cntr(struct ibv_context* context,
                                           struct ibv_comp_cntr_init_attr* cc_attr);

/// 0 or an errno: EBUSY while it is attached to a queue pair.
int ibv_destroy_comp_cntr(struct ibv_comp_cntr* comp_cntr);

/// Changes the count of successes, or that of errors. What completes in the same moment as a set
/// may be lost. 0 or an errno.
int ibv_set_comp_cntr(struct ibv_comp_cntr* comp_cntr, uint64_t value);
int ibv_set_err_comp_cntr(struct ibv_comp_cntr* comp_cntr, uint64_t value);
int ibv_inc_comp_cntr(struct ibv_comp_cntr* comp_cntr, uint64_t amount);
int ibv_inc_err_comp_cntr(struct ibv_comp_cntr* comp_cntr, uint64_t amount);

/// The counts as they are now. 0 or an errno.
int ibv_read_comp_cntr(struct ibv_comp_cntr* comp_cntr, uint64_t* value);
int ibv_read_err_comp_cntr(struct ibv_comp_cntr* comp_cntr, uint64_t* value);

/// From now on counts what `attr->op_mask` names of `qp`, which must be in RESET or INIT, until it
/// is destroyed. 0 or an errno: EBUSY when another counter has one of these operations, EINVAL,
/// EOPNOTSUPP.
int ibv_qp_attach_comp_cntr(struct ibv_qp* qp, struct ibv_comp_cntr* comp_cntr,
                            struct ibv_qp_attach_comp_cntr_attr* attr);

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_COMP_CNTR_H
