// SPDX-License-Identifier: BSD-2-Clause
//
// The extended completion queue: a cursor over completions, each field read by its own function, so
// that what is not read costs nothing. Part of <infiniband/verbs.h>; usable alone.
// From a successful ibv_start_poll to ibv_end_poll the queue is the calling thread's.
// Source: man ibv_create_cq_ex.
#ifndef INFINIBAND_VERBS_CQ_EX_H
#define INFINIBAND_VERBS_CQ_EX_H

#include <infiniband/verbs/base.h>
#include <infiniband/verbs/context.h>
#include <infiniband/verbs/cq.h>
#include <infiniband/verbs/wc.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Fields that the program will read; only these may be.
enum ibv_create_cq_wc_flags {
  IBV_WC_EX_WITH_BYTE_LEN = 1 << 0,
  IBV_WC_EX_WITH_IMM = 1 << 1,
  IBV_WC_EX_WITH_QP_NUM = 1 << 2,
  IBV_WC_EX_WITH_SRC_QP = 1 << 3,
  IBV_WC_EX_WITH_SLID = 1 << 4,
  IBV_WC_EX_WITH_SL = 1 << 5,
  IBV_WC_EX_WITH_DLID_PATH_BITS = 1 << 6,
  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP = 1 << 7,
  IBV_WC_EX_WITH_CVLAN = 1 << 8,
  IBV_WC_EX_WITH_FLOW_TAG = 1 << 9,
  IBV_WC_EX_WITH_TM_INFO = 1 << 10,
  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK = 1 << 11,
};

/// The fields that ibv_wc has too.
enum {
  IBV_WC_STANDARD_FLAGS = 0x7f,
};

/// All fields this header knows.
enum {
  IBV_CREATE_CQ_SUP_WC_FLAGS = 0xfff,
};

enum ibv_cq_init_attr_mask {
  IBV_CQ_INIT_ATTR_MASK_FLAGS = 1 << 0,
  IBV_CQ_INIT_ATTR_MASK_PD = 1 << 1,
};

enum ibv_create_cq_attr_flags {
  IBV_CREATE_CQ_ATTR_SINGLE_THREADED = 1 << 0,
  IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN = 1 << 1,
};

struct ibv_cq_init_attr_ex {
  uint32_t cqe;                      // at least so many entries
  void* cq_context;                  // handed back by ibv_get_cq_event
  struct ibv_comp_channel* channel;  // or NULL
  uint32_t comp_vector;              // below context->num_comp_vectors
  uint64_t wc_flags;                 // enum ibv_create_cq_wc_flags
  uint32_t comp_mask;                // enum ibv_cq_init_attr_mask: which members below are set
  uint32_t flags;                    // enum ibv_create_cq_attr_flags
  struct ibv_pd* parent_domain;
};

struct ibv_poll_cq_attr {
  uint32_t comp_mask;  // 0
};

/// What a tag-matching completion carries besides.
struct ibv_wc_tm_info {
  uint64_t tag;
  uint32_t priv;  // the sender's, opaque
};

/// The queue: all of ibv_cq first, so that one may stand for the other, then the cursor.
struct ibv_cq_ex {
  struct ibv_context* context;
  struct ibv_comp_channel* channel;
  void* cq_context;
  uint32_t handle;
  int cqe;
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  uint32_t comp_events_completed;
  uint32_t async_events_completed;

  uint32_t comp_mask;
  enum ibv_wc_status status;  // of the completion under the cursor
  uint64_t wr_id;             // likewise
  int (*start_poll)(struct ibv_cq_ex* current, struct ibv_poll_cq_attr* attr);
  int (*next_poll)(struct ibv_cq_ex* current);
  void (*end_poll)(struct ibv_cq_ex* current);
  enum ibv_wc_opcode (*read_opcode)(struct ibv_cq_ex* current);
  uint32_t (*read_vendor_err)(struct ibv_cq_ex* current);
  uint32_t (*read_byte_len)(struct ibv_cq_ex* current);
  __be32 (*read_imm_data)(struct ibv_cq_ex* current);
  uint32_t (*read_qp_num)(struct ibv_cq_ex* current);
  uint32_t (*read_src_qp)(struct ibv_cq_ex* current);
  unsigned int (*read_wc_flags)(struct ibv_cq_ex* current);
  uint32_t (*read_slid)(struct ibv_cq_ex* current);
  uint8_t (*read_sl)(struct ibv_cq_ex* current);
  uint8_t (*read_dlid_path_bits)(struct ibv_cq_ex* current);
  uint64_t (*read_completion_ts)(struct ibv_cq_ex* current);
  uint16_t (*read_cvlan)(struct ibv_cq_ex* current);
  uint32_t (*read_flow_tag)(struct ibv_cq_ex* current);
  void (*read_tm_info)(struct ibv_cq_ex* current, struct ibv_wc_tm_info* tm_info);
  uint64_t (*read_completion_wallclock_ns)(struct ibv_cq_ex* current);
};

/// A queue as `cq_attr` says; destroyed through ibv_cq_ex_to_cq. NULL + errno: EOPNOTSUPP, also
/// for a field that the device cannot give.
static inline struct ibv_cq_ex* ibv_create_cq_ex(struct ibv_context* context,
                                                 struct ibv_cq_init_attr_ex* cq_attr) {
  struct verbs_context* extended = verbs_get_ctx_op(context, create_cq_ex);
  if (extended) return extended->create_cq_ex(context, cq_attr);
  errno = EOPNOTSUPP;
  return NULL;
}

/// The extended queue's handle for the classic verbs.
static inline struct ibv_cq* ibv_cq_ex_to_cq(struct ibv_cq_ex* cq) {
  return VBT_POINTER_CAST_(struct ibv_cq*, cq);
}

/// Puts the cursor on the first completion. 0; ENOENT: none (do not call ibv_end_poll); an errno.
static inline int ibv_start_poll(struct ibv_cq_ex* cq, struct ibv_poll_cq_attr* attr) {
  return cq->start_poll(cq, attr);
}

/// Puts the cursor on the next completion. 0; ENOENT: none; an errno.
static inline int ibv_next_poll(struct ibv_cq_ex* cq) { return cq->next_poll(cq); }

/// Gives the queue free; the completions seen are taken.
static inline void ibv_end_poll(struct ibv_cq_ex* cq) { cq->end_poll(cq); }

// Fields of the completion under the cursor.
static inline enum ibv_wc_opcode ibv_wc_read_opcode(struct ibv_cq_ex* cq) {
  return cq->read_opcode(cq);
}
static inline uint32_t ibv_wc_read_vendor_err(struct ibv_cq_ex* cq) {
  return cq->read_vendor_err(cq);
}
/// Bytes received or read.
static inline uint32_t ibv_wc_read_byte_len(struct ibv_cq_ex* cq) { return cq->read_byte_len(cq); }
/// Network byte order.
static inline __be32 ibv_wc_read_imm_data(struct ibv_cq_ex* cq) { return cq->read_imm_data(cq); }
/// The key lies where immediate data would, and as it is: not in network byte order.
static inline uint32_t ibv_wc_read_invalidated_rkey(struct ibv_cq_ex* cq) {
#ifdef __CHECKER__
  return (__attribute__((force)) uint32_t)cq->read_imm_data(cq);
#else
  return cq->read_imm_data(cq);
#endif
}
static inline uint32_t ibv_wc_read_qp_num(struct ibv_cq_ex* cq) { return cq->read_qp_num(cq); }
static inline uint32_t ibv_wc_read_src_qp(struct ibv_cq_ex* cq) { return cq->read_src_qp(cq); }
/// enum ibv_wc_flags
static inline unsigned int ibv_wc_read_wc_flags(struct ibv_cq_ex* cq) {
  return cq->read_wc_flags(cq);
}
static inline uint32_t ibv_wc_read_slid(struct ibv_cq_ex* cq) { return cq->read_slid(cq); }
static inline uint8_t ibv_wc_read_sl(struct ibv_cq_ex* cq) { return cq->read_sl(cq); }
static inline uint8_t ibv_wc_read_dlid_path_bits(struct ibv_cq_ex* cq) {
  return cq->read_dlid_path_bits(cq);
}
/// In cycles of the device's clock (`hca_core_clock`).
static inline uint64_t ibv_wc_read_completion_ts(struct ibv_cq_ex* cq) {
  return cq->read_completion_ts(cq);
}
/// In nanoseconds since 1970.
static inline uint64_t ibv_wc_read_completion_wallclock_ns(struct ibv_cq_ex* cq) {
  return cq->read_completion_wallclock_ns(cq);
}
static inline uint16_t ibv_wc_read_cvlan(struct ibv_cq_ex* cq) { return cq->read_cvlan(cq); }
static inline uint32_t ibv_wc_read_flow_tag(struct ibv_cq_ex* cq) { return cq->read_flow_tag(cq); }
static inline void ibv_wc_read_tm_info(struct ibv_cq_ex* cq, struct ibv_wc_tm_info* tm_info) {
  cq->read_tm_info(cq, tm_info);
}

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_CQ_EX_H
