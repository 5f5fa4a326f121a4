// SPDX-License-Identifier: BSD-2-Clause
//
// The extended queue pair: work requests are built by calls instead of structures, so that each
// kind of request has its own function, chosen when the queue pair is made.
// Part of <infiniband/verbs.h>; usable alone. From ibv_wr_start to ibv_wr_complete or ibv_wr_abort
// the send queue is the calling thread's. Source: man ibv_wr_post.
//
//   ibv_wr_start; { set wr_id, wr_flags; one ibv_wr_<operation>; ibv_wr_set_ud_addr or _xrc_srqn
//   where the transport asks for it; one ibv_wr_set_sge*, _inline_data* }...; ibv_wr_complete
#ifndef INFINIBAND_VERBS_QP_EX_H
#define INFINIBAND_VERBS_QP_EX_H

#include <infiniband/verbs/base.h>
#include <infiniband/verbs/qp.h>
#include <infiniband/verbs/wr.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_qp_ex {
  struct ibv_qp qp_base;
  uint64_t comp_mask;
  uint64_t wr_id;         // read by the next ibv_wr_<operation>
  unsigned int wr_flags;  // likewise; enum ibv_send_flags without INLINE

  void (*wr_atomic_cmp_swp)(struct ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr,
                            uint64_t compare, uint64_t swap);
  void (*wr_atomic_fetch_add)(struct ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr,
                              uint64_t add);
  void (*wr_bind_mw)(struct ibv_qp_ex* qp, struct ibv_mw* mw, uint32_t rkey,
                     const struct ibv_mw_bind_info* bind_info);
  void (*wr_local_inv)(struct ibv_qp_ex* qp, uint32_t invalidate_rkey);
  void (*wr_rdma_read)(struct ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr);
  void (*wr_rdma_write)(struct ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr);
  void (*wr_rdma_write_imm)(struct ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr,
                            __be32 imm_data);
  void (*wr_send)(struct ibv_qp_ex* qp);
  void (*wr_send_imm)(struct ibv_qp_ex* qp, __be32 imm_data);
  void (*wr_send_inv)(struct ibv_qp_ex* qp, uint32_t invalidate_rkey);
  void (*wr_send_tso)(struct ibv_qp_ex* qp, void* hdr, uint16_t hdr_sz, uint16_t mss);
  void (*wr_set_ud_addr)(struct ibv_qp_ex* qp, struct ibv_ah* ah, uint32_t remote_qpn,
                         uint32_t remote_qkey);
  void (*wr_set_xrc_srqn)(struct ibv_qp_ex* qp, uint32_t remote_srqn);
  void (*wr_set_inline_data)(struct ibv_qp_ex* qp, void* addr, size_t length);
  void (*wr_set_inline_data_list)(struct ibv_qp_ex* qp, size_t num_buf,
                                  const struct ibv_data_buf* buf_list);
  void (*wr_set_sge)(struct ibv_qp_ex* qp, uint32_t lkey, uint64_t addr, uint32_t length);
  void (*wr_set_sge_list)(struct ibv_qp_ex* qp, size_t num_sge, const struct ibv_sge* sg_list);
  void (*wr_start)(struct ibv_qp_ex* qp);
  int (*wr_complete)(struct ibv_qp_ex* qp);
  void (*wr_abort)(struct ibv_qp_ex* qp);
  void (*wr_atomic_write)(struct ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr,
                          const void* atomic_wr);
  void (*wr_flush)(struct ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr, size_t len,
                   uint8_t type, uint8_t level);
};

/// The queue pair's handle for these functions, or NULL when it was not made with
/// IBV_QP_INIT_ATTR_SEND_OPS_FLAGS.
struct ibv_qp_ex* ibv_qp_to_qp_ex(struct ibv_qp* qp);

/// Opens the critical section.
static inline void ibv_wr_start(struct ibv_qp_ex* qp) { qp->wr_start(qp); }

/// Posts all that was built and closes the section. 0, or an errno: then nothing was posted.
static inline int ibv_wr_complete(struct ibv_qp_ex* qp) { return qp->wr_complete(qp); }

/// Drops all that was built and closes the section.
static inline void ibv_wr_abort(struct ibv_qp_ex* qp) { qp->wr_abort(qp); }

/// If the 8 bytes there equal `compare`, makes them `swap`; their old value comes back.
static inline void ibv_wr_atomic_cmp_swp(struct ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr,
                                         uint64_t compare, uint64_t swap) {
  qp->wr_atomic_cmp_swp(qp, rkey, remote_addr, compare, swap);
}

/// Adds to the 8 bytes there; their old value comes back.
static inline void ibv_wr_atomic_fetch_add(struct ibv_qp_ex* qp, uint32_t rkey,
                                           uint64_t remote_addr, uint64_t add) {
  qp->wr_atomic_fetch_add(qp, rkey, remote_addr, add);
}

/// Stores the 8 bytes at `atomic_wr` there, in one piece.
static inline void ibv_wr_atomic_write(struct ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr,
                                       const void* atomic_wr) {
  qp->wr_atomic_write(qp, rkey, remote_addr, atomic_wr);
}

/// Binds a type 2 window, under the new key `rkey`.
static inline void ibv_wr_bind_mw(struct ibv_qp_ex* qp, struct ibv_mw* mw, uint32_t rkey,
                                  const struct ibv_mw_bind_info* bind_info) {
  qp->wr_bind_mw(qp, mw, rkey, bind_info);
}

/// Closes the type 2 window of that key.
static inline void ibv_wr_local_inv(struct ibv_qp_ex* qp, uint32_t invalidate_rkey) {
  qp->wr_local_inv(qp, invalidate_rkey);
}

static inline void ibv_wr_rdma_read(struct ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr) {
  qp->wr_rdma_read(qp, rkey, remote_addr);
}

static inline void ibv_wr_rdma_write(struct ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr) {
  qp->wr_rdma_write(qp, rkey, remote_addr);
}

/// `imm_data` in network byte order.
static inline void ibv_wr_rdma_write_imm(struct ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr,
                                         __be32 imm_data) {
  qp->wr_rdma_write_imm(qp, rkey, remote_addr, imm_data);
}

/// Makes earlier writes there visible or persistent: `type` of enum ibv_placement_type, `level` of
/// enum ibv_selectivity_level. Takes no data.
static inline void ibv_wr_flush(struct ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr,
                                size_t len, uint8_t type, uint8_t level) {
  qp->wr_flush(qp, rkey, remote_addr, len, type, level);
}

static inline void ibv_wr_send(struct ibv_qp_ex* qp) { qp->wr_send(qp); }

/// `imm_data` in network byte order.
static inline void ibv_wr_send_imm(struct ibv_qp_ex* qp, __be32 imm_data) {
  qp->wr_send_imm(qp, imm_data);
}

/// The receiver's key is invalid before its receive completes.
static inline void ibv_wr_send_inv(struct ibv_qp_ex* qp, uint32_t invalidate_rkey) {
  qp->wr_send_inv(qp, invalidate_rkey);
}

/// Cuts the data into packets of `mss` bytes, each behind a copy of the `hdr_sz` bytes of headers.
static inline void ibv_wr_send_tso(struct ibv_qp_ex* qp, void* hdr, uint16_t hdr_sz, uint16_t mss) {
  qp->wr_send_tso(qp, hdr, hdr_sz, mss);
}

/// UD: where the request goes.
static inline void ibv_wr_set_ud_addr(struct ibv_qp_ex* qp, struct ibv_ah* ah, uint32_t remote_qpn,
                                      uint32_t remote_qkey) {
  qp->wr_set_ud_addr(qp, ah, remote_qpn, remote_qkey);
}

/// XRC: into which shared receive queue.
static inline void ibv_wr_set_xrc_srqn(struct ibv_qp_ex* qp, uint32_t remote_srqn) {
  qp->wr_set_xrc_srqn(qp, remote_srqn);
}

/// The data, copied now: at most max_inline_data bytes.
static inline void ibv_wr_set_inline_data(struct ibv_qp_ex* qp, void* addr, size_t length) {
  qp->wr_set_inline_data(qp, addr, length);
}

static inline void ibv_wr_set_inline_data_list(struct ibv_qp_ex* qp, size_t num_buf,
                                               const struct ibv_data_buf* buf_list) {
  qp->wr_set_inline_data_list(qp, num_buf, buf_list);
}

/// The data, one registered piece.
static inline void ibv_wr_set_sge(struct ibv_qp_ex* qp, uint32_t lkey, uint64_t addr,
                                  uint32_t length) {
  qp->wr_set_sge(qp, lkey, addr, length);
}

static inline void ibv_wr_set_sge_list(struct ibv_qp_ex* qp, size_t num_sge,
                                       const struct ibv_sge* sg_list) {
  qp->wr_set_sge_list(qp, num_sge, sg_list);
}

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_QP_EX_H
