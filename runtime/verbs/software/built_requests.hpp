// SPDX-License-Identifier: BSD-2-Clause
// ibv_wr_* over ibv_send_wr: each call says in the words of ibv_post_send what it was told. A
// request has its bytes set by one setter. From start to complete or abort the caller has the queue
// pair for itself. Source: man ibv_wr_post.
//
// For FLUSH and ATOMIC_WRITE, which ibv_post_send has no words for, these stand:
//
//   ATOMIC_WRITE  wr.rdma, and its 8 bytes inline
//   FLUSH         wr.atomic: compare_add = length, swap = type | level << 8
//
// Where requests lie while they are built, and what becomes of them, says `Requests`:
//
//   Qp                       the provider's queue pair; of(ibv_qp_ex*) is the one of a handle
//   add(qp, opcode)          the next request: wr_id and flags of the handle, no bytes, and to
//                            nobody (wr.ud and qp_type are zero). When there is no room: the batch
//                            fails with ENOMEM, and what is answered nobody will look at
//   current(qp)              the one that was added last, or any that nobody will look at
//   max_sge(qp)              how many SGEs it may have, and max_inline(qp) how many bytes inline:
//                            8 at least, where there is ATOMIC_WRITE
//   take_sges(qp, count)     its bytes lie where `count` SGEs say, which are to be written to the
//                            answer
//   take_inline(qp, bytes)   it has so many bytes inline, which are to be written to the answer
//   refuse(qp, errno)        the batch fails with this, unless it has failed before
//   refuse_inline(qp, bytes) ... because so many bytes are more than max_inline
//   start, complete, abort   the calls of these names, of a handle
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/verbs/software/work_calls.hpp"

namespace verbatim {

template <class Requests>
struct BuiltRequests {
  using Qp = typename Requests::Qp;

  static void send(ibv_qp_ex* qp) noexcept { add(qp, IBV_WR_SEND).imm_data = 0; }
  static void send_imm(ibv_qp_ex* qp, __be32 imm) noexcept {
    add(qp, IBV_WR_SEND_WITH_IMM).imm_data = imm;
  }
  static void send_inv(ibv_qp_ex* qp, std::uint32_t rkey) noexcept {
    add(qp, IBV_WR_SEND_WITH_INV).invalidate_rkey = rkey;
  }
  static void rdma_write(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address) noexcept {
    add(qp, IBV_WR_RDMA_WRITE).wr.rdma = {address, rkey};
  }
  static void rdma_write_imm(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address,
                             __be32 imm) noexcept {
    ibv_send_wr& wr = add(qp, IBV_WR_RDMA_WRITE_WITH_IMM);
    wr.imm_data = imm;
    wr.wr.rdma = {address, rkey};
  }
  static void rdma_read(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address) noexcept {
    add(qp, IBV_WR_RDMA_READ).wr.rdma = {address, rkey};
  }
  static void atomic_cmp_swp(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address,
                             std::uint64_t compare, std::uint64_t swap) noexcept {
    add(qp, IBV_WR_ATOMIC_CMP_AND_SWP).wr.atomic = {address, compare, swap, rkey};
  }
  static void atomic_fetch_add(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address,
                               std::uint64_t summand) noexcept {
    add(qp, IBV_WR_ATOMIC_FETCH_AND_ADD).wr.atomic = {address, summand, 0, rkey};
  }
  static void atomic_write(ibv_qp_ex* handle, std::uint32_t rkey, std::uint64_t address,
                           const void* value) noexcept {
    Qp& qp = Requests::of(handle);
    Requests::add(qp, IBV_WR_ATOMIC_WRITE).wr.rdma = {address, rkey};
    std::memcpy(Requests::take_inline(qp, 8), value, 8);
  }
  static void flush(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, std::size_t length,
                    std::uint8_t type, std::uint8_t level) noexcept {
    add(qp, IBV_WR_FLUSH).wr.atomic = {address, length,
                                       std::uint64_t{type} | std::uint64_t{level} << 8, rkey};
  }
  static void local_inv(ibv_qp_ex* qp, std::uint32_t rkey) noexcept {
    add(qp, IBV_WR_LOCAL_INV).invalidate_rkey = rkey;
  }
  static void bind_mw(ibv_qp_ex* qp, ibv_mw* mw, std::uint32_t rkey,
                      const ibv_mw_bind_info* info) noexcept {
    ibv_send_wr& wr = add(qp, IBV_WR_BIND_MW);
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = rkey;
    wr.bind_mw.bind_info = *info;
  }

  static void set_ud_addr(ibv_qp_ex* qp, ibv_ah* ah, std::uint32_t remote_qpn,
                          std::uint32_t remote_qkey) noexcept {
    Requests::current(Requests::of(qp)).wr.ud = {ah, remote_qpn, remote_qkey};
  }
  static void set_xrc_srqn(ibv_qp_ex* qp, std::uint32_t srqn) noexcept {
    Requests::current(Requests::of(qp)).qp_type.xrc.remote_srqn = srqn;
  }
  static void set_sge_list(ibv_qp_ex* handle, std::size_t count, const ibv_sge* list) noexcept {
    Qp& qp = Requests::of(handle);
    if (count > Requests::max_sge(qp)) return Requests::refuse(qp, EINVAL);
    ibv_sge* const sges = Requests::take_sges(qp, static_cast<std::uint32_t>(count));
    if (count != 0) std::memcpy(sges, list, count * sizeof(ibv_sge));
  }
  static void set_inline_data_list(ibv_qp_ex* handle, std::size_t count,
                                   const ibv_data_buf* list) noexcept {
    Qp& qp = Requests::of(handle);
    const std::size_t most = Requests::max_inline(qp);
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (list[i].length > most - bytes) return Requests::refuse_inline(qp, bytes + list[i].length);
      bytes += list[i].length;
    }
    unsigned char* to = Requests::take_inline(qp, static_cast<std::uint32_t>(bytes));
    for (std::size_t i = 0; i < count; to += list[i++].length)
      if (list[i].length != 0) std::memcpy(to, list[i].addr, list[i].length);
  }

  /// Stands for calls that were not asked for, or that the provider lacks (set_work_calls).
  static void refuse_call(ibv_qp_ex* qp) noexcept {
    Requests::refuse(Requests::of(qp), EOPNOTSUPP);
  }

  /// All that ibv_post_send has, and the two besides. A provider with faster ways of its own puts
  /// them in their places.
  static constexpr WorkCalls kCalls{.wr_atomic_cmp_swp = atomic_cmp_swp,
                                    .wr_atomic_fetch_add = atomic_fetch_add,
                                    .wr_bind_mw = bind_mw,
                                    .wr_local_inv = local_inv,
                                    .wr_rdma_read = rdma_read,
                                    .wr_rdma_write = rdma_write,
                                    .wr_rdma_write_imm = rdma_write_imm,
                                    .wr_send = send,
                                    .wr_send_imm = send_imm,
                                    .wr_send_inv = send_inv,
                                    .wr_set_ud_addr = set_ud_addr,
                                    .wr_set_xrc_srqn = set_xrc_srqn,
                                    .wr_set_inline_data = set_one_buffer<set_inline_data_list>,
                                    .wr_set_inline_data_list = set_inline_data_list,
                                    .wr_set_sge = set_one_sge<set_sge_list>,
                                    .wr_set_sge_list = set_sge_list,
                                    .wr_start = Requests::start,
                                    .wr_complete = Requests::complete,
                                    .wr_abort = Requests::abort,
                                    .wr_atomic_write = atomic_write,
                                    .wr_flush = flush};

 private:
  static ibv_send_wr& add(ibv_qp_ex* qp, ibv_wr_opcode opcode) noexcept {
    return Requests::add(Requests::of(qp), opcode);
  }
};

}  // namespace verbatim
