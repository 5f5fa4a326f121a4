// SPDX-License-Identifier: BSD-2-Clause
//
// Queue pairs: making, moving through their states, posting. Part of <infiniband/verbs.h>; usable
// alone. Any thread may call these, on the same queue pair too, unless a thread domain says
// otherwise. Source: IBTA 10.2.4, 10.3 (states), 11.2.4; man ibv_create_qp, ibv_create_qp_ex,
// ibv_modify_qp, ibv_query_qp, ibv_post_send, ibv_post_recv.
#ifndef INFINIBAND_VERBS_QP_H
#define INFINIBAND_VERBS_QP_H

#include <infiniband/verbs/base.h>
#include <infiniband/verbs/context.h>
#include <infiniband/verbs/qp_attr.h>
#include <infiniband/verbs/wr.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A queue pair. Programs read `qp_num`, `state` and `qp_type`; the mutex, the condition and the
/// counter are the library's.
struct ibv_qp {
  struct ibv_context* context;
  void* qp_context;
  struct ibv_pd* pd;
  struct ibv_cq* send_cq;
  struct ibv_cq* recv_cq;
  struct ibv_srq* srq;
  uint32_t handle;
  uint32_t qp_num;
  enum ibv_qp_state state;
  enum ibv_qp_type qp_type;
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  uint32_t events_completed;
};

/// A queue pair in state RESET; `qp_init_attr->cap` gets the real sizes. The caller destroys it.
/// NULL + errno.
struct ibv_qp* ibv_create_qp(struct ibv_pd* pd, struct ibv_qp_init_attr* qp_init_attr);

/// Also what has no place in ibv_qp_init_attr. With nothing but the domain it is ibv_create_qp.
/// NULL + errno: EOPNOTSUPP.
static inline struct ibv_qp* ibv_create_qp_ex(struct ibv_context* context,
                                              struct ibv_qp_init_attr_ex* qp_init_attr_ex) {
  struct verbs_context* extended;
  if (qp_init_attr_ex->comp_mask == IBV_QP_INIT_ATTR_PD)
    return ibv_create_qp(qp_init_attr_ex->pd,
                         VBT_POINTER_CAST_(struct ibv_qp_init_attr*, qp_init_attr_ex));
  extended = verbs_get_ctx_op(context, create_qp_ex);
  if (extended) return extended->create_qp_ex(context, qp_init_attr_ex);
  errno = EOPNOTSUPP;
  return NULL;
}

/// Another handle on an XRC receive queue pair. NULL + errno: EOPNOTSUPP.
static inline struct ibv_qp* ibv_open_qp(struct ibv_context* context,
                                         struct ibv_qp_open_attr* qp_open_attr) {
  struct verbs_context* extended = verbs_get_ctx_op(context, open_qp);
  if (extended) return extended->open_qp(context, qp_open_attr);
  errno = EOPNOTSUPP;
  return NULL;
}

/// Changes the attributes that `attr_mask` (enum ibv_qp_attr_mask) names; a new state demands and
/// allows what IBTA 11.2.4.2 says. Nothing changes on failure. 0 or an errno: EINVAL.
int ibv_modify_qp(struct ibv_qp* qp, struct ibv_qp_attr* attr, int attr_mask);

/// 0 or an errno: EOPNOTSUPP.
static inline int ibv_modify_qp_rate_limit(struct ibv_qp* qp, struct ibv_qp_rate_limit_attr* attr) {
  struct verbs_context* extended = verbs_get_ctx_op(qp->context, modify_qp_rate_limit);
  return extended ? extended->modify_qp_rate_limit(qp, attr) : EOPNOTSUPP;
}

/// Reads at least the attributes that `attr_mask` names, and how the queue pair was made.
/// 0 or an errno.
int ibv_query_qp(struct ibv_qp* qp, struct ibv_qp_attr* attr, int attr_mask,
                 struct ibv_qp_init_attr* init_attr);

/// 0 or an errno: EBUSY while attached to a multicast group. Waits until all its events are
/// acknowledged. When it returns 0, nobody reaches memory through it any more.
int ibv_destroy_qp(struct ibv_qp* qp);

enum ibv_query_qp_data_in_order_flags {
  IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS = 1 << 0,
  IBV_QUERY_QP_DATA_IN_ORDER_DEVICE_ONLY = 1 << 1,
};

enum ibv_query_qp_data_in_order_caps {
  IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG = 1 << 0,
  IBV_QUERY_QP_DATA_IN_ORDER_ALIGNED_128_BYTES = 1 << 1,
};

/// Whether data of `op` arriving here is written in order, so that a reader may watch the last
/// byte: 1 or 0; with IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS bits of enum
/// ibv_query_qp_data_in_order_caps.
int ibv_query_qp_data_in_order(struct ibv_qp* qp, enum ibv_wr_opcode op, uint32_t flags);

/// Posts a list of sends. 0, or an errno with `*bad_wr` at the first that was not posted (those in
/// front of it were): ENOMEM when the queue is full. Buffers belong to the queue until they
/// complete, except with IBV_SEND_INLINE.
static inline int ibv_post_send(struct ibv_qp* qp, struct ibv_send_wr* wr,
                                struct ibv_send_wr** bad_wr) {
  return qp->context->ops.post_send(qp, wr, bad_wr);
}

/// Posts a list of receives; fails as ibv_post_send. Buffers belong to the queue until they
/// complete.
static inline int ibv_post_recv(struct ibv_qp* qp, struct ibv_recv_wr* wr,
                                struct ibv_recv_wr** bad_wr) {
  return qp->context->ops.post_recv(qp, wr, bad_wr);
}

/// Enhanced connection establishment: what the two ends' providers agree on beyond the standard.
struct ibv_ece {
  uint32_t vendor_id;  // IEEE OUI of the provider's vendor
  uint32_t options;    // the provider's
  uint32_t comp_mask;  // 0
};

/// Sets the options to use; before the queue pair leaves INIT. 0 or an errno: EOPNOTSUPP. A device
/// that has none takes zeros alone.
int ibv_set_ece(struct ibv_qp* qp, struct ibv_ece* ece);

/// The options in use: all zeros where there are none. 0 or an errno: EOPNOTSUPP.
int ibv_query_ece(struct ibv_qp* qp, struct ibv_ece* ece);

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_QP_H
