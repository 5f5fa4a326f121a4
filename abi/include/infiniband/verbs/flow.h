// SPDX-License-Identifier: BSD-2-Clause
//
// Flow steering: which packets a queue pair receives, told by lists of specifications.
// Part of <infiniband/verbs.h>; usable alone. Any thread may call these. Source: man
// ibv_create_flow, ibv_flow_action_esp.
#ifndef INFINIBAND_VERBS_FLOW_H
#define INFINIBAND_VERBS_FLOW_H

#include <infiniband/verbs/base.h>
#include <infiniband/verbs/context.h>
#include <infiniband/verbs/flow_spec.h>
#include <infiniband/verbs/qp.h>
#include <infiniband/verbs_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Bit 0 is no longer in use.
enum ibv_flow_flags {
  IBV_FLOW_ATTR_FLAGS_DONT_TRAP = 1 << 1,
  IBV_FLOW_ATTR_FLAGS_EGRESS = 1 << 2,
};

/// By filters; or all Ethernet packets nobody else takes, only multicast ones, or everything.
enum ibv_flow_attr_type {
  IBV_FLOW_ATTR_NORMAL = 0,
  IBV_FLOW_ATTR_ALL_DEFAULT = 1,
  IBV_FLOW_ATTR_MC_DEFAULT = 2,
  IBV_FLOW_ATTR_SNIFFER = 3,
};

/// A rule. `num_of_specs` specifications follow it in memory, one after the other; `size` counts
/// all.
struct ibv_flow_attr {
  uint32_t comp_mask;
  enum ibv_flow_attr_type type;
  uint16_t size;
  uint16_t priority;  // 0 is highest
  uint8_t num_of_specs;
  uint8_t port;
  uint32_t flags;  // enum ibv_flow_flags
};

struct ibv_flow {
  uint32_t comp_mask;
  struct ibv_context* context;
  uint32_t handle;
};

struct ibv_flow_action {
  struct ibv_context* context;
};

enum ibv_flow_action_esp_mask {
  IBV_FLOW_ACTION_ESP_MASK_ESN = 1 << 0,
};

/// How packets are encrypted or decrypted on the way (IPsec ESP).
struct ibv_flow_action_esp_attr {
  struct ibv_flow_action_esp* esp_attr;
  enum ibv_flow_action_esp_keymat keymat_proto;
  uint16_t keymat_len;
  void* keymat_ptr;
  enum ibv_flow_action_esp_replay replay_proto;
  uint16_t replay_len;
  void* replay_ptr;
  struct ibv_flow_action_esp_encap* esp_encap;
  uint32_t comp_mask;  // enum ibv_flow_action_esp_mask
  uint32_t esn;
};

/// Adds a rule to the queue pair; the caller destroys it. NULL + errno: EOPNOTSUPP.
static inline struct ibv_flow* ibv_create_flow(struct ibv_qp* qp, struct ibv_flow_attr* flow) {
  struct verbs_context* extended = verbs_get_ctx_op(qp->context, ibv_create_flow);
  if (extended) return extended->ibv_create_flow(qp, flow);
  errno = EOPNOTSUPP;
  return NULL;
}

/// 0 or an errno.
static inline int ibv_destroy_flow(struct ibv_flow* flow_id) {
  struct verbs_context* extended = verbs_get_ctx_op(flow_id->context, ibv_destroy_flow);
  return extended ? extended->ibv_destroy_flow(flow_id) : EOPNOTSUPP;
}

/// A new action; the caller destroys it. NULL + errno: EOPNOTSUPP.
static inline struct ibv_flow_action* ibv_create_flow_action_esp(
    struct ibv_context* ctx, struct ibv_flow_action_esp_attr* esp) {
  struct verbs_context* extended = verbs_get_ctx_op(ctx, create_flow_action_esp);
  if (extended) return extended->create_flow_action_esp(ctx, esp);
  errno = EOPNOTSUPP;
  return NULL;
}

/// 0 or an errno.
static inline int ibv_modify_flow_action_esp(struct ibv_flow_action* action,
                                             struct ibv_flow_action_esp_attr* esp) {
  struct verbs_context* extended = verbs_get_ctx_op(action->context, modify_flow_action_esp);
  return extended ? extended->modify_flow_action_esp(action, esp) : EOPNOTSUPP;
}

/// 0 or an errno.
static inline int ibv_destroy_flow_action(struct ibv_flow_action* action) {
  struct verbs_context* extended = verbs_get_ctx_op(action->context, destroy_flow_action);
  return extended ? extended->destroy_flow_action(action) : EOPNOTSUPP;
}

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_FLOW_H
