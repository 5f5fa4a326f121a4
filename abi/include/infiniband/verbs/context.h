// SPDX-License-Identifier: BSD-2-Clause
//
// The opened device as a program sees it: the table of data-path functions at fixed offsets
// (`ibv_context.ops`), and the older sister in front of it (`verbs_context`) that holds every later
// verb. Part of <infiniband/verbs.h>; usable alone. Written by the library, read by inline
// functions.
//
//   address        sz bytes, ends here-----------------------------------v
//   verbs_context  [newest slot ... oldest slot][priv ...][sz][ibv_context]
//
// The table grows at its low end, so a slot's distance from the ibv_context never changes: a
// program compiled long ago finds its slots, a newer one learns from `sz` which of its slots are
// missing.
#ifndef INFINIBAND_VERBS_CONTEXT_H
#define INFINIBAND_VERBS_CONTEXT_H

#include <infiniband/verbs/base.h>
#include <infiniband/verbs_api.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_ah;
struct ibv_alloc_dm_attr;
struct ibv_buf;
struct ibv_context;
struct ibv_counter_attach_attr;
struct ibv_counters;
struct ibv_counters_init_attr;
struct ibv_cq;
struct ibv_cq_ex;
struct ibv_cq_init_attr_ex;
struct ibv_device;
struct ibv_device_attr;
struct ibv_device_attr_ex;
struct ibv_dm;
struct ibv_dmah;
struct ibv_dmah_init_attr;
struct ibv_flow;
struct ibv_flow_action;
struct ibv_flow_action_esp_attr;
struct ibv_flow_attr;
struct ibv_modify_cq_attr;
struct ibv_mr;
struct ibv_mr_init_attr;
struct ibv_mw;
struct ibv_mw_bind;
struct ibv_ops_wr;
struct ibv_parent_domain_init_attr;
struct ibv_pd;
struct ibv_port_attr;
struct ibv_qp;
struct ibv_qp_init_attr_ex;
struct ibv_qp_open_attr;
struct ibv_qp_rate_limit_attr;
struct ibv_query_device_ex_input;
struct ibv_recv_wr;
struct ibv_rwq_ind_table;
struct ibv_rwq_ind_table_init_attr;
struct ibv_send_wr;
struct ibv_sge;
struct ibv_srq;
struct ibv_srq_init_attr_ex;
struct ibv_td;
struct ibv_td_init_attr;
struct ibv_values_ex;
struct ibv_wc;
struct ibv_wq;
struct ibv_wq_attr;
struct ibv_wq_init_attr;
struct ibv_xrcd;
struct ibv_xrcd_init_attr;
struct verbs_ex_private;

/// The port attributes as the exported `ibv_query_port` writes them: the first 48 bytes only.
struct _compat_ibv_port_attr;

/// Memory windows of type 1 are bound by ibv_bind_mw, of type 2 by a work request (IBTA 10.6).
enum ibv_mw_type {
  IBV_MW_TYPE_1 = 1,
  IBV_MW_TYPE_2 = 2,
};

/// 32 slots at offset 8 of every ibv_context. Programs call those without the _compat_ prefix
/// through inline functions and test none of them; the others keep their places.
struct ibv_context_ops {
  int (*_compat_query_device)(struct ibv_context* context, struct ibv_device_attr* device_attr);
  int (*_compat_query_port)(struct ibv_context* context, uint8_t port_num,
                            struct _compat_ibv_port_attr* port_attr);
  void* (*_compat_alloc_pd)(void);
  void* (*_compat_dealloc_pd)(void);
  void* (*_compat_reg_mr)(void);
  void* (*_compat_rereg_mr)(void);
  void* (*_compat_dereg_mr)(void);
  struct ibv_mw* (*alloc_mw)(struct ibv_pd* pd, enum ibv_mw_type type);
  int (*bind_mw)(struct ibv_qp* qp, struct ibv_mw* mw, struct ibv_mw_bind* mw_bind);
  int (*dealloc_mw)(struct ibv_mw* mw);
  void* (*_compat_create_cq)(void);
  int (*poll_cq)(struct ibv_cq* cq, int num_entries, struct ibv_wc* wc);
  int (*req_notify_cq)(struct ibv_cq* cq, int solicited_only);
  void* (*_compat_cq_event)(void);
  void* (*_compat_resize_cq)(void);
  void* (*_compat_destroy_cq)(void);
  void* (*_compat_create_srq)(void);
  void* (*_compat_modify_srq)(void);
  void* (*_compat_query_srq)(void);
  void* (*_compat_destroy_srq)(void);
  int (*post_srq_recv)(struct ibv_srq* srq, struct ibv_recv_wr* recv_wr,
                       struct ibv_recv_wr** bad_recv_wr);
  void* (*_compat_create_qp)(void);
  void* (*_compat_query_qp)(void);
  void* (*_compat_modify_qp)(void);
  void* (*_compat_destroy_qp)(void);
  int (*post_send)(struct ibv_qp* qp, struct ibv_send_wr* wr, struct ibv_send_wr** bad_wr);
  int (*post_recv)(struct ibv_qp* qp, struct ibv_recv_wr* wr, struct ibv_recv_wr** bad_wr);
  void* (*_compat_create_ah)(void);
  void* (*_compat_destroy_ah)(void);
  void* (*_compat_attach_mcast)(void);
  void* (*_compat_detach_mcast)(void);
  void* (*_compat_async_event)(void);
};

/// An opened device. Owned by the library from ibv_open_device to ibv_close_device; programs read
/// `device`, `async_fd` (pollable, never read) and `num_comp_vectors`. `mutex` is the library's.
struct ibv_context {
  struct ibv_device* device;
  struct ibv_context_ops ops;
  int cmd_fd;
  int async_fd;
  int num_comp_vectors;
  pthread_mutex_t mutex;
  void* abi_compat;  // all ones: a verbs_context stands in front of this object
};

/// Every verb that came after the first table. Only the library makes one; `context` is its end.
struct verbs_context {
  // A new slot goes in front of this line.
  void (*free_buf)(struct ibv_buf* buf);
  void* (*alloc_buf)(struct ibv_pd* pd, size_t size, struct ibv_buf** buf);
  int (*dm_export_dmabuf_fd)(struct ibv_dm* dm);
  struct ibv_mr* (*reg_mr_ex)(struct ibv_pd* pd, struct ibv_mr_init_attr* mr_init_attr);
  int (*dealloc_dmah)(struct ibv_dmah* dmah);
  struct ibv_dmah* (*alloc_dmah)(struct ibv_context* context, struct ibv_dmah_init_attr* attr);
  // From here on as in rdma-core 44.
  int (*query_port)(struct ibv_context* context, uint8_t port_num, struct ibv_port_attr* port_attr,
                    size_t port_attr_len);
  int (*advise_mr)(struct ibv_pd* pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                   struct ibv_sge* sg_list, uint32_t num_sges);
  struct ibv_mr* (*alloc_null_mr)(struct ibv_pd* pd);
  int (*read_counters)(struct ibv_counters* counters, uint64_t* counters_value, uint32_t ncounters,
                       uint32_t flags);
  int (*attach_counters_point_flow)(struct ibv_counters* counters,
                                    struct ibv_counter_attach_attr* attr, struct ibv_flow* flow);
  struct ibv_counters* (*create_counters)(struct ibv_context* context,
                                          struct ibv_counters_init_attr* init_attr);
  int (*destroy_counters)(struct ibv_counters* counters);
  struct ibv_mr* (*reg_dm_mr)(struct ibv_pd* pd, struct ibv_dm* dm, uint64_t dm_offset,
                              size_t length, unsigned int access);
  struct ibv_dm* (*alloc_dm)(struct ibv_context* context, struct ibv_alloc_dm_attr* attr);
  int (*free_dm)(struct ibv_dm* dm);
  int (*modify_flow_action_esp)(struct ibv_flow_action* action,
                                struct ibv_flow_action_esp_attr* attr);
  int (*destroy_flow_action)(struct ibv_flow_action* action);
  struct ibv_flow_action* (*create_flow_action_esp)(struct ibv_context* context,
                                                    struct ibv_flow_action_esp_attr* attr);
  int (*modify_qp_rate_limit)(struct ibv_qp* qp, struct ibv_qp_rate_limit_attr* attr);
  struct ibv_pd* (*alloc_parent_domain)(struct ibv_context* context,
                                        struct ibv_parent_domain_init_attr* attr);
  int (*dealloc_td)(struct ibv_td* td);
  struct ibv_td* (*alloc_td)(struct ibv_context* context, struct ibv_td_init_attr* init_attr);
  int (*modify_cq)(struct ibv_cq* cq, struct ibv_modify_cq_attr* attr);
  int (*post_srq_ops)(struct ibv_srq* srq, struct ibv_ops_wr* op, struct ibv_ops_wr** bad_op);
  int (*destroy_rwq_ind_table)(struct ibv_rwq_ind_table* rwq_ind_table);
  struct ibv_rwq_ind_table* (*create_rwq_ind_table)(struct ibv_context* context,
                                                    struct ibv_rwq_ind_table_init_attr* init_attr);
  int (*destroy_wq)(struct ibv_wq* wq);
  int (*modify_wq)(struct ibv_wq* wq, struct ibv_wq_attr* wq_attr);
  struct ibv_wq* (*create_wq)(struct ibv_context* context, struct ibv_wq_init_attr* wq_init_attr);
  int (*query_rt_values)(struct ibv_context* context, struct ibv_values_ex* values);
  struct ibv_cq_ex* (*create_cq_ex)(struct ibv_context* context,
                                    struct ibv_cq_init_attr_ex* init_attr);
  struct verbs_ex_private* priv;
  int (*query_device_ex)(struct ibv_context* context, const struct ibv_query_device_ex_input* input,
                         struct ibv_device_attr_ex* attr, size_t attr_size);
  int (*ibv_destroy_flow)(struct ibv_flow* flow);
  void (*ABI_placeholder2)(void);  // programs of 2013 look for ibv_destroy_flow here: keep a copy
  struct ibv_flow* (*ibv_create_flow)(struct ibv_qp* qp, struct ibv_flow_attr* flow_attr);
  void (*ABI_placeholder1)(void);  // likewise ibv_create_flow
  struct ibv_qp* (*open_qp)(struct ibv_context* context, struct ibv_qp_open_attr* attr);
  struct ibv_qp* (*create_qp_ex)(struct ibv_context* context,
                                 struct ibv_qp_init_attr_ex* qp_init_attr_ex);
  int (*get_srq_num)(struct ibv_srq* srq, uint32_t* srq_num);
  struct ibv_srq* (*create_srq_ex)(struct ibv_context* context,
                                   struct ibv_srq_init_attr_ex* srq_init_attr_ex);
  struct ibv_xrcd* (*open_xrcd)(struct ibv_context* context,
                                struct ibv_xrcd_init_attr* xrcd_init_attr);
  int (*close_xrcd)(struct ibv_xrcd* xrcd);
  uint64_t _ABI_placeholder3;
  size_t sz;                   // bytes of the whole object as the library laid it out
  struct ibv_context context;  // stays last
};

/// The value of `abi_compat` that says "a verbs_context stands in front".
#define __VERBS_ABI_IS_EXTENDED VBT_POINTER_CAST_(void*, UINTPTR_MAX)

/// The verbs_context around `ctx`, or NULL when the library that made `ctx` has none.
static inline struct verbs_context* verbs_get_ctx(struct ibv_context* ctx) {
  char* at = VBT_POINTER_CAST_(char*, ctx);
  if (ctx->abi_compat != __VERBS_ABI_IS_EXTENDED) return NULL;
  return VBT_POINTER_CAST_(struct verbs_context*,
                           VBT_POINTER_CAST_(void*, at - offsetof(struct verbs_context, context)));
}

/// As verbs_get_ctx, but NULL also when the slot at `slot_offset` of *our* declaration lies outside
/// the library's object, or is empty. The offset is a constant, so all of this is two compares.
static inline struct verbs_context* vbt_context_with_slot_(struct ibv_context* ctx,
                                                           size_t slot_offset) {
  struct verbs_context* extended = verbs_get_ctx(ctx);
  void (*slot)(void);
  if (!extended || extended->sz < sizeof(*extended) - slot_offset) return NULL;
  memcpy(&slot, VBT_POINTER_CAST_(const char*, extended) + slot_offset, sizeof(slot));
  return slot ? extended : NULL;
}

/// The verbs_context whose slot `op` can be called, or NULL: then the verb is not supported.
#define verbs_get_ctx_op(ctx, op) vbt_context_with_slot_((ctx), offsetof(struct verbs_context, op))

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_CONTEXT_H
