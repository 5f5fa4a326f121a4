// SPDX-License-Identifier: BSD-2-Clause
//
// Work queues apart from a queue pair, and the indirection tables that spread packets over them.
// Part of <infiniband/verbs.h>; usable alone. Any thread may call these, on the same queue too.
// Source: man ibv_create_wq, ibv_modify_wq, ibv_create_rwq_ind_table.
#ifndef INFINIBAND_VERBS_WQ_H
#define INFINIBAND_VERBS_WQ_H

#include <infiniband/verbs/base.h>
#include <infiniband/verbs/context.h>
#include <infiniband/verbs/wr.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ibv_wq_type {
  IBV_WQT_RQ = 0,
};

enum ibv_wq_init_attr_mask {
  IBV_WQ_INIT_ATTR_FLAGS = 1 << 0,
  IBV_WQ_INIT_ATTR_RESERVED = 1 << 1,
};

enum ibv_wq_flags {
  IBV_WQ_FLAGS_CVLAN_STRIPPING = 1 << 0,
  IBV_WQ_FLAGS_SCATTER_FCS = 1 << 1,
  IBV_WQ_FLAGS_DELAY_DROP = 1 << 2,
  IBV_WQ_FLAGS_PCI_WRITE_END_PADDING = 1 << 3,
  IBV_WQ_FLAGS_RESERVED = 1 << 4,
};

struct ibv_wq_init_attr {
  void* wq_context;
  enum ibv_wq_type wq_type;
  uint32_t max_wr;
  uint32_t max_sge;
  struct ibv_pd* pd;
  struct ibv_cq* cq;
  uint32_t comp_mask;     // enum ibv_wq_init_attr_mask
  uint32_t create_flags;  // enum ibv_wq_flags
};

enum ibv_wq_state {
  IBV_WQS_RESET = 0,
  IBV_WQS_RDY = 1,
  IBV_WQS_ERR = 2,
  IBV_WQS_UNKNOWN = 3,
};

enum ibv_wq_attr_mask {
  IBV_WQ_ATTR_STATE = 1 << 0,
  IBV_WQ_ATTR_CURR_STATE = 1 << 1,
  IBV_WQ_ATTR_FLAGS = 1 << 2,
  IBV_WQ_ATTR_RESERVED = 1 << 3,
};

struct ibv_wq_attr {
  uint32_t attr_mask;               // enum ibv_wq_attr_mask: which members below are set
  enum ibv_wq_state wq_state;       // to go to
  enum ibv_wq_state curr_wq_state;  // to come from, else fail
  uint32_t flags;                   // enum ibv_wq_flags: new values
  uint32_t flags_mask;              // enum ibv_wq_flags: which of them
};

struct ibv_wq {
  struct ibv_context* context;
  void* wq_context;
  struct ibv_pd* pd;
  struct ibv_cq* cq;
  uint32_t wq_num;
  uint32_t handle;
  enum ibv_wq_state state;
  enum ibv_wq_type wq_type;
  int (*post_recv)(struct ibv_wq* current, struct ibv_recv_wr* recv_wr,
                   struct ibv_recv_wr** bad_recv_wr);
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  uint32_t events_completed;
  uint32_t comp_mask;
};

struct ibv_rwq_ind_table {
  struct ibv_context* context;
  int ind_tbl_handle;
  int ind_tbl_num;
  uint32_t comp_mask;
};

enum ibv_ind_table_init_attr_mask {
  IBV_CREATE_IND_TABLE_RESERVED = 1 << 0,
};

/// A table of 2^log_ind_tbl_size receive queues, all of type IBV_WQT_RQ.
struct ibv_rwq_ind_table_init_attr {
  uint32_t log_ind_tbl_size;
  struct ibv_wq** ind_tbl;
  uint32_t comp_mask;
};

/// A work queue of at least the size asked for; the real size is written back. The members that
/// count events are set up here, in the caller's code: older libraries rely on it. The caller
/// destroys it. NULL + errno: EOPNOTSUPP.
static inline struct ibv_wq* ibv_create_wq(struct ibv_context* context,
                                           struct ibv_wq_init_attr* wq_init_attr) {
  struct verbs_context* extended = verbs_get_ctx_op(context, create_wq);
  struct ibv_wq* queue;
  if (!extended) {
    errno = EOPNOTSUPP;
    return NULL;
  }
  queue = extended->create_wq(context, wq_init_attr);
  if (!queue) return NULL;
  pthread_mutex_init(&queue->mutex, NULL);
  pthread_cond_init(&queue->cond, NULL);
  queue->events_completed = 0;
  queue->wq_context = wq_init_attr->wq_context;
  return queue;
}

/// 0 or an errno: EOPNOTSUPP.
static inline int ibv_modify_wq(struct ibv_wq* wq, struct ibv_wq_attr* wq_attr) {
  struct verbs_context* extended = verbs_get_ctx_op(wq->context, modify_wq);
  return extended ? extended->modify_wq(wq, wq_attr) : EOPNOTSUPP;
}

/// 0 or an errno: EBUSY while a table holds it.
static inline int ibv_destroy_wq(struct ibv_wq* wq) {
  struct verbs_context* extended = verbs_get_ctx_op(wq->context, destroy_wq);
  return extended ? extended->destroy_wq(wq) : EOPNOTSUPP;
}

/// Posts a list of receives. 0, or an errno with `*bad_recv_wr` at the first that was not posted.
static inline int ibv_post_wq_recv(struct ibv_wq* wq, struct ibv_recv_wr* recv_wr,
                                   struct ibv_recv_wr** bad_recv_wr) {
  return wq->post_recv(wq, recv_wr, bad_recv_wr);
}

/// A new table; the caller destroys it. NULL + errno: EOPNOTSUPP.
static inline struct ibv_rwq_ind_table* ibv_create_rwq_ind_table(
    struct ibv_context* context, struct ibv_rwq_ind_table_init_attr* init_attr) {
  struct verbs_context* extended = verbs_get_ctx_op(context, create_rwq_ind_table);
  if (extended) return extended->create_rwq_ind_table(context, init_attr);
  errno = EOPNOTSUPP;
  return NULL;
}

/// 0 or an errno: EBUSY while a QP uses it.
static inline int ibv_destroy_rwq_ind_table(struct ibv_rwq_ind_table* rwq_ind_table) {
  struct verbs_context* extended = verbs_get_ctx_op(rwq_ind_table->context, destroy_rwq_ind_table);
  return extended ? extended->destroy_rwq_ind_table(rwq_ind_table) : EOPNOTSUPP;
}

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_WQ_H
