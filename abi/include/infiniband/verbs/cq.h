// SPDX-License-Identifier: BSD-2-Clause
//
// Completion queues and the channels that announce them. Part of <infiniband/verbs.h>; usable
// alone. Any thread may call these, on the same queue too, unless it was made single-threaded.
// Source: IBTA 10.2.6, 11.4.2; man ibv_create_cq, ibv_poll_cq, ibv_req_notify_cq,
// ibv_get_cq_event, ibv_modify_cq.
#ifndef INFINIBAND_VERBS_CQ_H
#define INFINIBAND_VERBS_CQ_H

#include <infiniband/verbs/base.h>
#include <infiniband/verbs/context.h>
#include <infiniband/verbs/wc.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Carries completion events of any number of queues. Programs poll(2) `fd` and may set O_NONBLOCK
/// on it, but never read it.
struct ibv_comp_channel {
  struct ibv_context* context;
  int fd;
  int refcnt;
};

/// A completion queue. Programs read `cqe`, the number of entries it really has; the mutex, the
/// condition and the counters are the library's.
struct ibv_cq {
  struct ibv_context* context;
  struct ibv_comp_channel* channel;
  void* cq_context;
  uint32_t handle;
  int cqe;
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  uint32_t comp_events_completed;
  uint32_t async_events_completed;
};

enum ibv_cq_attr_mask {
  IBV_CQ_ATTR_MODERATE = 1 << 0,
  IBV_CQ_ATTR_RESERVED = 1 << 1,
};

/// One event for up to `cq_count` completions, or `cq_period` microseconds after the first.
struct ibv_moderate_cq {
  uint16_t cq_count;
  uint16_t cq_period;
};

struct ibv_modify_cq_attr {
  uint32_t attr_mask;  // enum ibv_cq_attr_mask
  struct ibv_moderate_cq moderate;
};

/// A new channel; the caller destroys it. NULL + errno.
struct ibv_comp_channel* ibv_create_comp_channel(struct ibv_context* context);

/// 0 or an errno: EBUSY while a queue uses it.
int ibv_destroy_comp_channel(struct ibv_comp_channel* channel);

/// A queue of at least `cqe` entries; `channel` may be NULL; `comp_vector` is in
/// [0, context->num_comp_vectors). The caller destroys it. NULL + errno.
struct ibv_cq* ibv_create_cq(struct ibv_context* context, int cqe, void* cq_context,
                             struct ibv_comp_channel* channel, int comp_vector);

/// Makes room for at least `cqe` entries, the unpolled ones included. 0 or an errno: EINVAL.
int ibv_resize_cq(struct ibv_cq* cq, int cqe);

/// 0 or an errno: EBUSY while a QP uses it. Waits until all its events are acknowledged.
int ibv_destroy_cq(struct ibv_cq* cq);

/// Waits for the next completion event of the channel; with O_NONBLOCK it does not wait. Gives the
/// queue and its cq_context. Every event taken must be acknowledged. 0, or -1 with errno.
int ibv_get_cq_event(struct ibv_comp_channel* channel, struct ibv_cq** cq, void** cq_context);

/// Acknowledges `nevents` events of the queue. It takes a lock: better many events at once.
void ibv_ack_cq_events(struct ibv_cq* cq, unsigned int nevents);

/// Takes up to `num_entries` completions into `wc`. Their number, 0 when there are none, negative
/// on failure. Fewer than asked for: the queue was empty at the end.
static inline int ibv_poll_cq(struct ibv_cq* cq, int num_entries, struct ibv_wc* wc) {
  return cq->context->ops.poll_cq(cq, num_entries, wc);
}

/// Asks for one event at the next completion; with `solicited_only`, at the next that is solicited
/// or in error. Completions already in the queue raise none: poll once more after asking.
/// 0 or an errno.
static inline int ibv_req_notify_cq(struct ibv_cq* cq, int solicited_only) {
  return cq->context->ops.req_notify_cq(cq, solicited_only);
}

/// 0 or an errno: EOPNOTSUPP.
static inline int ibv_modify_cq(struct ibv_cq* cq, struct ibv_modify_cq_attr* attr) {
  struct verbs_context* extended = verbs_get_ctx_op(cq->context, modify_cq);
  return extended ? extended->modify_cq(cq, attr) : EOPNOTSUPP;
}

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_CQ_H
