// SPDX-License-Identifier: BSD-2-Clause
//
// Counters that flows feed. Part of <infiniband/verbs.h>; usable alone. Any thread may call these.
// Source: man ibv_create_counters, ibv_attach_counters_point_flow, ibv_read_counters.
#ifndef INFINIBAND_VERBS_COUNTERS_H
#define INFINIBAND_VERBS_COUNTERS_H

#include <infiniband/verbs/base.h>
#include <infiniband/verbs/context.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_counters_init_attr {
  uint32_t comp_mask;  // 0
};

struct ibv_counters {
  struct ibv_context* context;
};

enum ibv_counter_description {
  IBV_COUNTER_PACKETS = 0,
  IBV_COUNTER_BYTES = 1,
};

struct ibv_counter_attach_attr {
  enum ibv_counter_description counter_desc;
  uint32_t index;      // of the value in ibv_read_counters
  uint32_t comp_mask;  // 0
};

enum ibv_read_counters_flags {
  IBV_READ_COUNTERS_ATTR_PREFER_CACHED = 1 << 0,
};

/// A new set of counters; the caller destroys it. NULL + errno: EOPNOTSUPP.
static inline struct ibv_counters* ibv_create_counters(struct ibv_context* context,
                                                       struct ibv_counters_init_attr* init_attr) {
  struct verbs_context* extended = verbs_get_ctx_op(context, create_counters);
  if (extended) return extended->create_counters(context, init_attr);
  errno = EOPNOTSUPP;
  return NULL;
}

/// 0 or an errno.
static inline int ibv_destroy_counters(struct ibv_counters* counters) {
  struct verbs_context* extended = verbs_get_ctx_op(counters->context, destroy_counters);
  return extended ? extended->destroy_counters(counters) : EOPNOTSUPP;
}

/// Lets `flow` count at `attr->index`. 0 or an errno.
static inline int ibv_attach_counters_point_flow(struct ibv_counters* counters,
                                                 struct ibv_counter_attach_attr* attr,
                                                 struct ibv_flow* flow) {
  struct verbs_context* extended = verbs_get_ctx_op(counters->context, attach_counters_point_flow);
  return extended ? extended->attach_counters_point_flow(counters, attr, flow) : EOPNOTSUPP;
}

/// Reads `ncounters` values; `flags` of enum ibv_read_counters_flags. 0 or an errno.
static inline int ibv_read_counters(struct ibv_counters* counters, uint64_t* counters_value,
                                    uint32_t ncounters, uint32_t flags) {
  struct verbs_context* extended = verbs_get_ctx_op(counters->context, read_counters);
  return extended ? extended->read_counters(counters, counters_value, ncounters, flags)
                  : EOPNOTSUPP;
}

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_COUNTERS_H
