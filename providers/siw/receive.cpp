// SPDX-License-Identifier: BSD-2-Clause
#include <cerrno>

#include "providers/siw/hot.hpp"
#include "providers/siw/request_fast.hpp"
#include "providers/siw/send.hpp"
#include "runtime/verbs/software/request_list.hpp"

namespace verbatim::siw {
namespace {

/// What a receive must be: 0 or EINVAL.
int check_receive(const ibv_recv_wr& wr, std::uint32_t max_sge) noexcept {
  if (!has_sound_list(wr, max_sge)) return EINVAL;
  const std::uint64_t bytes = bytes_of(wr.sg_list, static_cast<std::size_t>(wr.num_sge));
  return bytes > kMostMessageBytes ? EINVAL : 0;
}

/// The kernel finds receives by itself, when a message asks for one.
int post_receives(WorkRing<siw_rqe>& ring, std::uint32_t max_sge, ibv_recv_wr* wr,
                  ibv_recv_wr** bad) noexcept {
  return post_in_order(wr, bad, [&](const ibv_recv_wr& next) noexcept {
    siw_rqe* const element = ring.vacant();
    const int error = element == nullptr ? ENOMEM : check_receive(next, max_sge);
    if (error != 0) return error;
    element->id = next.wr_id;
    element->opcode = SIW_OP_RECEIVE;
    element->unused = 0;
    write_list(*element, next.sg_list, static_cast<std::size_t>(next.num_sge));
    ring.publish(SIW_WQE_VALID);
    return 0;
  });
}

/// Flushes a list of receives on a queue pair that has failed.
[[gnu::cold]] int flush_list_locked(Qp& qp, ibv_recv_wr* wr, ibv_recv_wr** bad) noexcept {
  QpDirectory::fail(qp);
  settle_receives_locked(qp);
  return post_in_order(wr, bad, [&](const ibv_recv_wr& next) noexcept {
    const int error = check_receive(next, qp.max_recv_sge);
    return error != 0 ? error : flush(qp.plain.recv_cq, qp, next.wr_id, IBV_WC_RECV);
  });
}

}  // namespace

int post_recv(ibv_qp* handle, ibv_recv_wr* wr, ibv_recv_wr** bad) noexcept {
  Qp& qp = static_cast<Qp&>(verbatim::Qp::from(handle));
  LockGuard<SpinLock> guard(qp.receive_lock);
  const ibv_qp_state state = state_of(qp);
  // IBTA 10.8.3: not in RESET. With a shared receive queue there is no ring.
  if (state == IBV_QPS_RESET || !qp.receive_ring.mapped()) {
    *bad = wr;
    return EINVAL;
  }
  if (qp.failed.load(std::memory_order_relaxed) || state > IBV_QPS_RTS) [[unlikely]]
    return flush_list_locked(qp, wr, bad);
  return post_receives(qp.receive_ring, qp.max_recv_sge, wr, bad);
}

int post_srq_recv(ibv_srq* handle, ibv_recv_wr* wr, ibv_recv_wr** bad) noexcept {
  Srq& srq = static_cast<Srq&>(verbatim::Srq::from(handle));
  LockGuard<SpinLock> guard(srq.lock);
  return post_receives(srq.ring, srq.max_sge, wr, bad);
}

}  // namespace verbatim::siw
