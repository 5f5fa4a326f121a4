// SPDX-License-Identifier: BSD-2-Clause
//
// Shared receive queues: one pool of receives for many queue pairs.
// Part of <infiniband/verbs.h>; usable alone. Any thread may call these, on the same queue too.
// Source: IBTA 10.2.9; man ibv_create_srq, ibv_create_srq_ex, ibv_post_srq_recv.
#ifndef INFINIBAND_VERBS_SRQ_H
#define INFINIBAND_VERBS_SRQ_H

#include <infiniband/verbs/base.h>
#include <infiniband/verbs/context.h>
#include <infiniband/verbs/wr.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ibv_srq_attr_mask {
  IBV_SRQ_MAX_WR = 1 << 0,
  IBV_SRQ_LIMIT = 1 << 1,
};

struct ibv_srq_attr {
  uint32_t max_wr;
  uint32_t max_sge;
  uint32_t srq_limit;  // one event when fewer receives are left; 0: unarmed
};

struct ibv_srq_init_attr {
  void* srq_context;
  struct ibv_srq_attr attr;
};

enum ibv_srq_type {
  IBV_SRQT_BASIC = 0,
  IBV_SRQT_XRC = 1,
  IBV_SRQT_TM = 2,
};

enum ibv_srq_init_attr_mask {
  IBV_SRQ_INIT_ATTR_TYPE = 1 << 0,
  IBV_SRQ_INIT_ATTR_PD = 1 << 1,
  IBV_SRQ_INIT_ATTR_XRCD = 1 << 2,
  IBV_SRQ_INIT_ATTR_CQ = 1 << 3,
  IBV_SRQ_INIT_ATTR_TM = 1 << 4,
  IBV_SRQ_INIT_ATTR_RESERVED = 1 << 5,
};

struct ibv_tm_cap {
  uint32_t max_num_tags;
  uint32_t max_ops;
};

/// Begins like ibv_srq_init_attr, so that the simple case may be handed on as one.
struct ibv_srq_init_attr_ex {
  void* srq_context;
  struct ibv_srq_attr attr;
  uint32_t comp_mask;  // enum ibv_srq_init_attr_mask: which members below are set
  enum ibv_srq_type srq_type;
  struct ibv_pd* pd;
  struct ibv_xrcd* xrcd;
  struct ibv_cq* cq;
  struct ibv_tm_cap tm_cap;
};

struct ibv_srq {
  struct ibv_context* context;
  void* srq_context;
  struct ibv_pd* pd;
  uint32_t handle;
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  uint32_t events_completed;
};

/// A queue of at least the size asked for; the real size is written back. The caller destroys it.
/// NULL + errno.
struct ibv_srq* ibv_create_srq(struct ibv_pd* pd, struct ibv_srq_init_attr* srq_init_attr);

/// Also XRC and tag-matching queues. A basic queue in a domain needs nothing beyond ibv_create_srq
/// and goes there. NULL + errno: EOPNOTSUPP.
static inline struct ibv_srq* ibv_create_srq_ex(struct ibv_context* context,
                                                struct ibv_srq_init_attr_ex* srq_init_attr_ex) {
  const uint32_t mask = srq_init_attr_ex->comp_mask;
  const uint32_t pd_bit = IBV_SRQ_INIT_ATTR_PD;
  const uint32_t type_bit = IBV_SRQ_INIT_ATTR_TYPE;
  struct verbs_context* extended;
  if (mask == pd_bit ||
      (mask == (pd_bit | type_bit) && srq_init_attr_ex->srq_type == IBV_SRQT_BASIC))
    return ibv_create_srq(srq_init_attr_ex->pd,
                          VBT_POINTER_CAST_(struct ibv_srq_init_attr*, srq_init_attr_ex));
  extended = verbs_get_ctx_op(context, create_srq_ex);
  if (extended) return extended->create_srq_ex(context, srq_init_attr_ex);
  errno = EOPNOTSUPP;
  return NULL;
}

/// Resizes (IBV_SRQ_MAX_WR) or arms the limit (IBV_SRQ_LIMIT). 0 or an errno.
int ibv_modify_srq(struct ibv_srq* srq, struct ibv_srq_attr* srq_attr, int srq_attr_mask);

/// 0 or an errno.
int ibv_query_srq(struct ibv_srq* srq, struct ibv_srq_attr* srq_attr);

/// The number that an XRC sender names. 0 or an errno: EOPNOTSUPP.
static inline int ibv_get_srq_num(struct ibv_srq* srq, uint32_t* srq_num) {
  struct verbs_context* extended = verbs_get_ctx_op(srq->context, get_srq_num);
  return extended ? extended->get_srq_num(srq, srq_num) : EOPNOTSUPP;
}

/// 0 or an errno: EBUSY while a QP uses it. Waits until all its events are acknowledged.
int ibv_destroy_srq(struct ibv_srq* srq);

/// Posts a list of receives. 0, or an errno with `*bad_recv_wr` at the first that was not posted.
static inline int ibv_post_srq_recv(struct ibv_srq* srq, struct ibv_recv_wr* recv_wr,
                                    struct ibv_recv_wr** bad_recv_wr) {
  return srq->context->ops.post_srq_recv(srq, recv_wr, bad_recv_wr);
}

/// Posts a list of tag operations. 0, or an errno with `*bad_op` at the first that was not posted.
static inline int ibv_post_srq_ops(struct ibv_srq* srq, struct ibv_ops_wr* op,
                                   struct ibv_ops_wr** bad_op) {
  struct verbs_context* extended = verbs_get_ctx_op(srq->context, post_srq_ops);
  if (extended) return extended->post_srq_ops(srq, op, bad_op);
  *bad_op = op;
  return EOPNOTSUPP;
}

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_SRQ_H
