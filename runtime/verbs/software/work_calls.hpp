// SPDX-License-Identifier: BSD-2-Clause
// ibv_wr_*: which function stands behind each call of a queue pair, for providers that build
// requests by calls. Source: man ibv_wr_post, ibv_create_qp_ex (send_ops_flags).
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

namespace verbatim {

namespace detail {

/// Stands in place of a call that was not asked for when the queue pair was made, or that its
/// provider lacks: the batch fails.
template <class Call, void (*kRefuse)(ibv_qp_ex*) noexcept>
struct RefusedCall;
template <class... Arguments, void (*kRefuse)(ibv_qp_ex*) noexcept>
struct RefusedCall<void (*)(ibv_qp_ex*, Arguments...), kRefuse> {
  static void call(ibv_qp_ex* qp, Arguments...) noexcept { kRefuse(qp); }
};

}  // namespace detail

/// What a provider does for each call; null: it has none.
struct WorkCalls {
  decltype(ibv_qp_ex::wr_atomic_cmp_swp) wr_atomic_cmp_swp = nullptr;
  decltype(ibv_qp_ex::wr_atomic_fetch_add) wr_atomic_fetch_add = nullptr;
  decltype(ibv_qp_ex::wr_bind_mw) wr_bind_mw = nullptr;
  decltype(ibv_qp_ex::wr_local_inv) wr_local_inv = nullptr;
  decltype(ibv_qp_ex::wr_rdma_read) wr_rdma_read = nullptr;
  decltype(ibv_qp_ex::wr_rdma_write) wr_rdma_write = nullptr;
  decltype(ibv_qp_ex::wr_rdma_write_imm) wr_rdma_write_imm = nullptr;
  decltype(ibv_qp_ex::wr_send) wr_send = nullptr;
  decltype(ibv_qp_ex::wr_send_imm) wr_send_imm = nullptr;
  decltype(ibv_qp_ex::wr_send_inv) wr_send_inv = nullptr;
  decltype(ibv_qp_ex::wr_send_tso) wr_send_tso = nullptr;
  decltype(ibv_qp_ex::wr_set_ud_addr) wr_set_ud_addr = nullptr;
  decltype(ibv_qp_ex::wr_set_xrc_srqn) wr_set_xrc_srqn = nullptr;
  decltype(ibv_qp_ex::wr_set_inline_data) wr_set_inline_data = nullptr;
  decltype(ibv_qp_ex::wr_set_inline_data_list) wr_set_inline_data_list = nullptr;
  decltype(ibv_qp_ex::wr_set_sge) wr_set_sge = nullptr;
  decltype(ibv_qp_ex::wr_set_sge_list) wr_set_sge_list = nullptr;
  decltype(ibv_qp_ex::wr_start) wr_start = nullptr;
  decltype(ibv_qp_ex::wr_complete) wr_complete = nullptr;
  decltype(ibv_qp_ex::wr_abort) wr_abort = nullptr;
  decltype(ibv_qp_ex::wr_atomic_write) wr_atomic_write = nullptr;
  decltype(ibv_qp_ex::wr_flush) wr_flush = nullptr;
};

/// The setters of one piece, of a provider that has those of lists.
template <void (*kSetList)(ibv_qp_ex*, std::size_t, const ibv_sge*) noexcept>
void set_one_sge(ibv_qp_ex* qp, std::uint32_t lkey, std::uint64_t address,
                 std::uint32_t length) noexcept {
  const ibv_sge sge{address, length, lkey};
  kSetList(qp, 1, &sge);
}
template <void (*kSetList)(ibv_qp_ex*, std::size_t, const ibv_data_buf*) noexcept>
void set_one_buffer(ibv_qp_ex* qp, void* data, std::size_t length) noexcept {
  const ibv_data_buf piece{data, length};
  kSetList(qp, 1, &piece);
}

/// Fills the calls of `qp` with those of `calls` that `asked` (IBV_QP_EX_WITH_*) allows; the
/// setters, start, complete and abort belong to all of them. `kRefuse` stands for the others: it
/// notes in the batch that it fails with EOPNOTSUPP, and lets setters follow.
template <void (*kRefuse)(ibv_qp_ex*) noexcept>
void set_work_calls(ibv_qp_ex& qp, std::uint64_t asked, const WorkCalls& calls) noexcept {
  const auto set = []<class Call>(Call& slot, Call call) {
    slot = call != nullptr ? call : detail::RefusedCall<Call, kRefuse>::call;
  };
  const auto set_if_asked = [&]<class Call>(Call& slot, Call call, std::uint64_t bit) {
    set(slot, (asked & bit) != 0 ? call : nullptr);
  };
  set_if_asked(qp.wr_send, calls.wr_send, IBV_QP_EX_WITH_SEND);
  set_if_asked(qp.wr_send_imm, calls.wr_send_imm, IBV_QP_EX_WITH_SEND_WITH_IMM);
  set_if_asked(qp.wr_send_inv, calls.wr_send_inv, IBV_QP_EX_WITH_SEND_WITH_INV);
  set_if_asked(qp.wr_send_tso, calls.wr_send_tso, IBV_QP_EX_WITH_TSO);
  set_if_asked(qp.wr_rdma_write, calls.wr_rdma_write, IBV_QP_EX_WITH_RDMA_WRITE);
  set_if_asked(qp.wr_rdma_write_imm, calls.wr_rdma_write_imm, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM);
  set_if_asked(qp.wr_rdma_read, calls.wr_rdma_read, IBV_QP_EX_WITH_RDMA_READ);
  set_if_asked(qp.wr_atomic_cmp_swp, calls.wr_atomic_cmp_swp, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP);
  set_if_asked(qp.wr_atomic_fetch_add, calls.wr_atomic_fetch_add,
               IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD);
  set_if_asked(qp.wr_atomic_write, calls.wr_atomic_write, IBV_QP_EX_WITH_ATOMIC_WRITE);
  set_if_asked(qp.wr_flush, calls.wr_flush, IBV_QP_EX_WITH_FLUSH);
  set_if_asked(qp.wr_local_inv, calls.wr_local_inv, IBV_QP_EX_WITH_LOCAL_INV);
  set_if_asked(qp.wr_bind_mw, calls.wr_bind_mw, IBV_QP_EX_WITH_BIND_MW);
  set(qp.wr_set_ud_addr, calls.wr_set_ud_addr);
  set(qp.wr_set_xrc_srqn, calls.wr_set_xrc_srqn);
  set(qp.wr_set_sge, calls.wr_set_sge);
  set(qp.wr_set_sge_list, calls.wr_set_sge_list);
  set(qp.wr_set_inline_data, calls.wr_set_inline_data);
  set(qp.wr_set_inline_data_list, calls.wr_set_inline_data_list);
  qp.wr_start = calls.wr_start;
  qp.wr_complete = calls.wr_complete;
  qp.wr_abort = calls.wr_abort;
}

}  // namespace verbatim
