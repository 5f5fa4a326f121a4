// SPDX-License-Identifier: BSD-2-Clause
//
// The slots of the data path.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

namespace verbatim::shm {

struct Qp;
class SendLock;

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) noexcept;
int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept;
int poll_cq(ibv_cq* cq, int entries, ibv_wc* wc) noexcept;

/// post_slowly() of a UD queue pair, and of an XRC initiator. The send lock is held.
[[gnu::noinline]] int post_by_kind(Qp& qp, SendLock& lock, const ibv_send_wr& wr) noexcept;

/// Of queues without timestamps; the slots of those with them are in cursor.cpp.
int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) noexcept;
int next_poll(ibv_cq_ex* cq) noexcept;
void end_poll(ibv_cq_ex* cq) noexcept;
/// Of queues that one thread at a time uses.
int start_poll_alone(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) noexcept;
void end_poll_alone(ibv_cq_ex* cq) noexcept;

/// Of connected queue pairs made for ibv_wr_*.
void wr_start(ibv_qp_ex* qp) noexcept;
int wr_complete(ibv_qp_ex* qp) noexcept;
/// The same of a thread domain.
void wr_start_in_domain(ibv_qp_ex* qp) noexcept;
int wr_complete_in_domain(ibv_qp_ex* qp) noexcept;
void wr_send(ibv_qp_ex* qp) noexcept;
void wr_send_imm(ibv_qp_ex* qp, __be32 imm) noexcept;
void wr_rdma_write(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address) noexcept;
void wr_set_sge(ibv_qp_ex* qp, std::uint32_t lkey, std::uint64_t address,
                std::uint32_t length) noexcept;
void wr_set_inline_data(ibv_qp_ex* qp, void* data, std::size_t length) noexcept;

}  // namespace verbatim::shm
