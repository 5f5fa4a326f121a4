// SPDX-License-Identifier: BSD-2-Clause
//
// The data path as the C slots call it; the bodies are in *_fast.hpp.
#include "providers/shm/hot.hpp"

#include "providers/shm/cursor_fast.hpp"
#include "providers/shm/poll_fast.hpp"
#include "providers/shm/receive_fast.hpp"
#include "providers/shm/send_fast.hpp"
#include "providers/shm/work_fast.hpp"

namespace verbatim::shm {

namespace {

[[gnu::noinline]] int post_send_in_domain(Qp& qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) noexcept {
  return post_send_fast<true>(qp, wr, bad_wr);
}

[[gnu::noinline]] int next_round(Cq& cq) noexcept { return look_again<false>(cq); }

}  // namespace

int post_send(ibv_qp* handle, ibv_send_wr* wr, ibv_send_wr** bad_wr) noexcept {
  Qp& qp = Qp::from(handle);
  if (qp.in_domain) [[unlikely]]
    return post_send_in_domain(qp, wr, bad_wr);
  return post_send_fast<false>(qp, wr, bad_wr);
}

int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept {
  return post_recv_fast(Qp::from(qp), wr, bad_wr);
}

int poll_cq(ibv_cq* cq, int entries, ibv_wc* wc) noexcept {
  return poll_cq_fast(Cq::from(cq), entries, wc);
}

int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) noexcept {
  return start_poll_fast<false, false>(Cq::from(cq), attr);
}

int start_poll_alone(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) noexcept {
  return start_poll_fast<false, true>(Cq::from(cq), attr);
}

int next_poll(ibv_cq_ex* cq) noexcept { return next_poll_fast(Cq::from(cq), next_round); }

void end_poll(ibv_cq_ex* cq) noexcept { end_poll_fast<false>(Cq::from(cq)); }

void end_poll_alone(ibv_cq_ex* cq) noexcept { end_poll_fast<true>(Cq::from(cq)); }

void wr_start(ibv_qp_ex* qp) noexcept { PostLock<false>::keep(Qp::from(qp)); }

void wr_start_in_domain(ibv_qp_ex* qp) noexcept { PostLock<true>::keep(Qp::from(qp)); }

int wr_complete(ibv_qp_ex* qp) noexcept { return complete_work<false>(Qp::from(qp)); }

int wr_complete_in_domain(ibv_qp_ex* qp) noexcept { return complete_work<true>(Qp::from(qp)); }

void take_send_lock_slowly(Qp& qp) noexcept { SendLock(qp, SendLock::As::kUser).keep(); }

int post_slowly_locked(Qp& qp, const ibv_send_wr& wr) noexcept {
  SendLock lock(qp, SendLock::Kept{});
  const int error = post_slowly(qp, lock, wr);
  lock.keep();
  return error;
}

void wr_send(ibv_qp_ex* qp) noexcept {
  if (ibv_send_wr* const wr = add_work(Qp::from(qp), IBV_WR_SEND); wr != nullptr) wr->imm_data = 0;
}

void wr_send_imm(ibv_qp_ex* qp, __be32 imm) noexcept {
  if (ibv_send_wr* const wr = add_work(Qp::from(qp), IBV_WR_SEND_WITH_IMM); wr != nullptr)
    wr->imm_data = imm;
}

void wr_rdma_write(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address) noexcept {
  if (ibv_send_wr* const wr = add_work(Qp::from(qp), IBV_WR_RDMA_WRITE); wr != nullptr)
    wr->wr.rdma = {address, rkey};
}

void wr_set_sge(ibv_qp_ex* qp, std::uint32_t lkey, std::uint64_t address,
                std::uint32_t length) noexcept {
  set_sge(Qp::from(qp), lkey, address, length);
}

void wr_set_inline_data(ibv_qp_ex* qp, void* data, std::size_t length) noexcept {
  set_inline_data(Qp::from(qp), data, length);
}

bool find_write_target(Qp& qp, std::uint32_t rkey) noexcept {
  WriteTarget& target = qp.write_target;
  target.rkey = 0;
  Region region;
  if (!find_region(qp.remote_regions, qp.remote_region_capacity, rkey, region)) return false;
  // All of it, so that any part of it needs no more than its bounds.
  unsigned char* const base =
      mapped_bytes(qp, rkey, region.iova, region.length, IBV_ACCESS_REMOTE_WRITE);
  if (base == nullptr) return false;
  target = {
      &qp.remote_regions[rkey >> 8].serial, region.serial, region.iova, region.length, base, rkey};
  return true;
}

void ring_peer(Qp& qp, bool solicited) noexcept {
  const std::uint32_t cq = peek(qp.remote->cq);
  if (cq >= kMaxCqs) return;
  Doorbells& doorbells = qp.peer->segment.doorbells();
  doorbells.cqs[cq].ring(peek(qp.remote->cq_bit));
  // The ring is a full fence: either we see the CQ armed, or whoever arms it sees the bit.
  const std::uint32_t armed = qp.peer->segment.cqs()[cq].armed.load(std::memory_order_seq_cst);
  if (armed == CqRecord::kArmed || (armed == CqRecord::kArmedSolicited && solicited)) {
    doorbells.cq_wake.ring(cq);
    qp.peer->wake_service();
  }
}

}  // namespace verbatim::shm
