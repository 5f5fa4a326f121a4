// SPDX-License-Identifier: BSD-2-Clause
//
// Memory windows: revocable remote rights over part of a region.
// Part of <infiniband/verbs.h>; usable alone. Any thread may call these.
// Source: IBTA 10.6; man ibv_alloc_mw, ibv_bind_mw, ibv_inc_rkey.
#ifndef INFINIBAND_VERBS_MW_H
#define INFINIBAND_VERBS_MW_H

#include <infiniband/verbs/base.h>
#include <infiniband/verbs/context.h>
#include <infiniband/verbs/mr.h>
#include <infiniband/verbs/pd.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_mw {
  struct ibv_context* context;
  struct ibv_pd* pd;
  uint32_t rkey;
  uint32_t handle;
  enum ibv_mw_type type;
};

/// What a window shows: `length` bytes at `addr` of `mr`, with `mw_access_flags` of enum
/// ibv_access_flags. No `mr` and no bytes: the window is closed.
struct ibv_mw_bind_info {
  struct ibv_mr* mr;
  uint64_t addr;
  uint64_t length;
  unsigned int mw_access_flags;
};

struct ibv_mw_bind {
  uint64_t wr_id;
  unsigned int send_flags;  // enum ibv_send_flags
  struct ibv_mw_bind_info bind_info;
};

/// A new, unbound window; the caller frees it. NULL + errno: EOPNOTSUPP.
static inline struct ibv_mw* ibv_alloc_mw(struct ibv_pd* pd, enum ibv_mw_type type) {
  if (pd->context->ops.alloc_mw) return pd->context->ops.alloc_mw(pd, type);
  errno = EOPNOTSUPP;
  return NULL;
}

/// Frees a window, bound or not. 0 or an errno.
static inline int ibv_dealloc_mw(struct ibv_mw* mw) { return mw->context->ops.dealloc_mw(mw); }

/// The rkey with its low byte, the caller's part of the key, moved one on (modulo 256).
static inline uint32_t ibv_inc_rkey(uint32_t rkey) {
  return (rkey & 0xffffff00U) | ((rkey + 1U) & 0xffU);
}

/// Posts the binding of a type 1 window to the QP; `mw->rkey` changes at once. 0 or an errno:
/// EINVAL for another type or for bytes without a region, EPERM when the domains differ.
static inline int ibv_bind_mw(struct ibv_qp* qp, struct ibv_mw* mw, struct ibv_mw_bind* mw_bind) {
  const struct ibv_mw_bind_info* const info = &mw_bind->bind_info;
  if (mw->type != IBV_MW_TYPE_1) return EINVAL;
  if (info->mr) {
    if (info->mr->pd != mw->pd) return EPERM;
  } else if (info->addr != 0 || info->length != 0) {
    return EINVAL;
  }
  return mw->context->ops.bind_mw(qp, mw, mw_bind);
}

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_MW_H
