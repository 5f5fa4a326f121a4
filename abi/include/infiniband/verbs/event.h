// SPDX-License-Identifier: BSD-2-Clause
//
// Asynchronous events: what happened to an object or a port outside of any call.
// Part of <infiniband/verbs.h>; usable alone. Any thread may call these.
// Source: IBTA 11.6.3; man ibv_get_async_event.
#ifndef INFINIBAND_VERBS_EVENT_H
#define INFINIBAND_VERBS_EVENT_H

#include <infiniband/verbs/base.h>
#include <infiniband/verbs/context.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ibv_event_type {
  IBV_EVENT_CQ_ERR = 0,
  IBV_EVENT_QP_FATAL = 1,
  IBV_EVENT_QP_REQ_ERR = 2,
  IBV_EVENT_QP_ACCESS_ERR = 3,
  IBV_EVENT_COMM_EST = 4,
  IBV_EVENT_SQ_DRAINED = 5,
  IBV_EVENT_PATH_MIG = 6,
  IBV_EVENT_PATH_MIG_ERR = 7,
  IBV_EVENT_DEVICE_FATAL = 8,
  IBV_EVENT_PORT_ACTIVE = 9,
  IBV_EVENT_PORT_ERR = 10,
  IBV_EVENT_LID_CHANGE = 11,
  IBV_EVENT_PKEY_CHANGE = 12,
  IBV_EVENT_SM_CHANGE = 13,
  IBV_EVENT_SRQ_ERR = 14,
  IBV_EVENT_SRQ_LIMIT_REACHED = 15,
  IBV_EVENT_QP_LAST_WQE_REACHED = 16,
  IBV_EVENT_CLIENT_REREGISTER = 17,
  IBV_EVENT_GID_CHANGE = 18,
  IBV_EVENT_WQ_FATAL = 19,
  IBV_EVENT_DEVICE_SPEED_CHANGE = 20,  // of one or more ports; names none of them
};

/// An event and what it is about; the type says which member of `element` is meant.
struct ibv_async_event {
  union {
    struct ibv_cq* cq;
    struct ibv_qp* qp;
    struct ibv_srq* srq;
    struct ibv_wq* wq;
    int port_num;
  } element;
  enum ibv_event_type event_type;
};

/// Waits for the next event; with O_NONBLOCK on `context->async_fd` it does not wait. Every event
/// taken must be acknowledged. 0, or -1 with errno (EAGAIN: none now).
int ibv_get_async_event(struct ibv_context* context, struct ibv_async_event* event);

/// Acknowledges an event that ibv_get_async_event gave. Destroying the object it is about waits
/// for this.
void ibv_ack_async_event(struct ibv_async_event* event);

/// A readable name; never NULL; static storage.
const char* ibv_event_type_str(enum ibv_event_type event);

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_EVENT_H
