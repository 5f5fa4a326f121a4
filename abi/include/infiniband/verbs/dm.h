// SPDX-License-Identifier: BSD-2-Clause
//
// Device memory: memory on the device itself, reached by copies and by regions.
// Part of <infiniband/verbs.h>; usable alone. Any thread may call these.
// Source: man ibv_alloc_dm, ibv_import_dm, ibv_dm_export_dmabuf_fd.
#ifndef INFINIBAND_VERBS_DM_H
#define INFINIBAND_VERBS_DM_H

#include <infiniband/verbs/base.h>
#include <infiniband/verbs/context.h>
#include <infiniband/verbs/pd.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_alloc_dm_attr {
  size_t length;           // bytes
  uint32_t log_align_req;  // n: aligned to 2^n bytes
  uint32_t comp_mask;      // 0
};

enum ibv_dm_mask {
  IBV_DM_MASK_HANDLE = 1 << 0,
};

struct ibv_dm {
  struct ibv_context* context;
  int (*memcpy_to_dm)(struct ibv_dm* dm, uint64_t dm_offset, const void* host_addr, size_t length);
  int (*memcpy_from_dm)(void* host_addr, struct ibv_dm* dm, uint64_t dm_offset, size_t length);
  uint32_t comp_mask;  // enum ibv_dm_mask
  uint32_t handle;
};

/// Allocates device memory; the caller frees it. NULL + errno: EOPNOTSUPP.
static inline struct ibv_dm* ibv_alloc_dm(struct ibv_context* context,
                                          struct ibv_alloc_dm_attr* attr) {
  struct verbs_context* extended = verbs_get_ctx_op(context, alloc_dm);
  if (extended) return extended->alloc_dm(context, attr);
  errno = EOPNOTSUPP;
  return NULL;
}

/// 0 or an errno: EBUSY while a region covers it.
static inline int ibv_free_dm(struct ibv_dm* dm) {
  struct verbs_context* extended = verbs_get_ctx_op(dm->context, free_dm);
  return extended ? extended->free_dm(dm) : EOPNOTSUPP;
}

/// Copies `length` bytes of the host to device memory from `dm_offset` on. 0 or an errno.
static inline int ibv_memcpy_to_dm(struct ibv_dm* dm, uint64_t dm_offset, const void* host_addr,
                                   size_t length) {
  return dm->memcpy_to_dm(dm, dm_offset, host_addr, length);
}

/// Copies `length` bytes of device memory from `dm_offset` on to the host. 0 or an errno.
static inline int ibv_memcpy_from_dm(void* host_addr, struct ibv_dm* dm, uint64_t dm_offset,
                                     size_t length) {
  return dm->memcpy_from_dm(host_addr, dm, dm_offset, length);
}

/// Registers device memory; keyed addresses count from the start of the region. NULL + errno.
static inline struct ibv_mr* ibv_reg_dm_mr(struct ibv_pd* pd, struct ibv_dm* dm, uint64_t dm_offset,
                                           size_t length, unsigned int access) {
  struct verbs_context* extended = verbs_get_ctx_op(pd->context, reg_dm_mr);
  if (extended) return extended->reg_dm_mr(pd, dm, dm_offset, length, access);
  errno = EOPNOTSUPP;
  return NULL;
}

/// A handle on device memory of another process that shares the command channel. NULL + errno.
struct ibv_dm* ibv_import_dm(struct ibv_context* context, uint32_t dm_handle);

/// Drops the handle; the memory itself stays with its maker.
void ibv_unimport_dm(struct ibv_dm* dm);

/// A DMA-buffer descriptor of the memory, which the caller closes. -1 + errno: EOPNOTSUPP.
int ibv_dm_export_dmabuf_fd(struct ibv_dm* dm);

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_DM_H
