// SPDX-License-Identifier: BSD-2-Clause
//
// Domains: protection domains, thread domains, parent domains that join the two, XRC domains.
// Part of <infiniband/verbs.h>; usable alone. Any thread may call these.
// Source: IBTA 10.2.3; man ibv_alloc_pd, ibv_alloc_td, ibv_alloc_parent_domain,
// ibv_open_xrcd, ibv_import_pd.
#ifndef INFINIBAND_VERBS_PD_H
#define INFINIBAND_VERBS_PD_H

#include <infiniband/verbs/base.h>
#include <infiniband/verbs/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Objects work together only when they share a protection domain.
struct ibv_pd {
  struct ibv_context* context;
  uint32_t handle;
};

/// The caller's promise that objects made with it are used by one thread at a time: no locks.
struct ibv_td {
  struct ibv_context* context;
};

struct ibv_td_init_attr {
  uint32_t comp_mask;  // 0
};

enum ibv_parent_domain_init_attr_mask {
  IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS = 1 << 0,
  IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT = 1 << 1,
  /// In a confidential guest ibv_alloc_buf may give memory that the host can see.
  IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC = 1 << 2,
};

/// What a caller's `alloc` answers to leave this one allocation to the library.
#define IBV_ALLOCATOR_USE_DEFAULT VBT_POINTER_CAST_(void*, UINTPTR_MAX)

struct ibv_parent_domain_init_attr {
  struct ibv_pd* pd;   // required
  struct ibv_td* td;   // or NULL
  uint32_t comp_mask;  // enum ibv_parent_domain_init_attr_mask
  void* (*alloc)(struct ibv_pd* pd, void* pd_context, size_t size, size_t alignment,
                 uint64_t resource_type);
  void (*free)(struct ibv_pd* pd, void* pd_context, void* ptr, uint64_t resource_type);
  void* pd_context;  // handed to both
};

enum ibv_xrcd_init_attr_mask {
  IBV_XRCD_INIT_ATTR_FD = 1 << 0,
  IBV_XRCD_INIT_ATTR_OFLAGS = 1 << 1,
  IBV_XRCD_INIT_ATTR_RESERVED = 1 << 2,
};

/// `fd` is -1, or an open file whose inode names the domain to other processes; `oflags` as in
/// open(2): O_CREAT, O_EXCL.
struct ibv_xrcd_init_attr {
  uint32_t comp_mask;
  int fd;
  int oflags;
};

struct ibv_xrcd {
  struct ibv_context* context;
};

/// A new protection domain; the caller frees it. NULL + errno.
struct ibv_pd* ibv_alloc_pd(struct ibv_context* context);

/// Frees a protection or parent domain. 0 or an errno: EBUSY while objects use it.
int ibv_dealloc_pd(struct ibv_pd* pd);

/// A handle on a domain of another process that shares the command channel. NULL + errno.
struct ibv_pd* ibv_import_pd(struct ibv_context* context, uint32_t pd_handle);

/// Drops the handle; the domain itself stays with its maker.
void ibv_unimport_pd(struct ibv_pd* pd);

/// A new thread domain; the caller frees it. NULL + errno.
static inline struct ibv_td* ibv_alloc_td(struct ibv_context* context,
                                          struct ibv_td_init_attr* init_attr) {
  struct verbs_context* extended = verbs_get_ctx_op(context, alloc_td);
  if (extended) return extended->alloc_td(context, init_attr);
  errno = EOPNOTSUPP;
  return NULL;
}

/// 0 or an errno: EBUSY while a parent domain uses it.
static inline int ibv_dealloc_td(struct ibv_td* td) {
  struct verbs_context* extended = verbs_get_ctx_op(td->context, dealloc_td);
  return extended ? extended->dealloc_td(td) : EOPNOTSUPP;
}

/// A domain that joins a protection domain, a thread domain and allocators; used wherever an ibv_pd
/// is, freed by ibv_dealloc_pd. NULL + errno.
static inline struct ibv_pd* ibv_alloc_parent_domain(struct ibv_context* context,
                                                     struct ibv_parent_domain_init_attr* attr) {
  struct verbs_context* extended = verbs_get_ctx_op(context, alloc_parent_domain);
  if (extended) return extended->alloc_parent_domain(context, attr);
  errno = EOPNOTSUPP;
  return NULL;
}

/// Opens or creates an XRC domain; the caller closes it. NULL + errno.
static inline struct ibv_xrcd* ibv_open_xrcd(struct ibv_context* context,
                                             struct ibv_xrcd_init_attr* xrcd_init_attr) {
  struct verbs_context* extended = verbs_get_ctx_op(context, open_xrcd);
  if (extended) return extended->open_xrcd(context, xrcd_init_attr);
  errno = EOPNOTSUPP;
  return NULL;
}

/// 0 or an errno: EBUSY while objects use it. The library that made `xrcd` has the slot: no test.
static inline int ibv_close_xrcd(struct ibv_xrcd* xrcd) {
  return verbs_get_ctx(xrcd->context)->close_xrcd(xrcd);
}

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_PD_H
