// SPDX-License-Identifier: BSD-2-Clause
#include <cerrno>

#include "providers/rxe/hot.hpp"
#include "providers/rxe/objects.hpp"
#include "providers/rxe/request_fast.hpp"
#include "providers/rxe/ring_fast.hpp"
#include "runtime/verbs/software/request_list.hpp"

namespace verbatim::rxe {
namespace {

int write_receive(ReceiveElement& element, const ibv_recv_wr& wr, std::uint32_t max_sge) noexcept {
  if (!has_sound_list(wr, max_sge)) return EINVAL;
  const auto count = static_cast<std::size_t>(wr.num_sge);
  const std::uint64_t bytes = bytes_of(wr.sg_list, count);
  if (bytes > kMostMessageBytes) return EINVAL;
  element.wr_id = wr.wr_id;
  element.reserved = 0;
  element.padding = 0;
  element.dma = {};
  element.dma.length = element.dma.resid = static_cast<std::uint32_t>(bytes);
  write_list(element, wr.sg_list, count);
  return 0;
}

/// The kernel finds receives by itself, when a message asks for one.
int post_receives(const Queue& queue, std::uint32_t max_sge, ibv_recv_wr* wr,
                  ibv_recv_wr** bad) noexcept {
  Producer ring(queue);
  int error = 0;
  ibv_recv_wr* const first = wr;
  for (; wr != nullptr; wr = wr->next) {
    error = ring.room() == 0 ? ENOMEM : write_receive(ring.slot<ReceiveElement>(), *wr, max_sge);
    if (error != 0) break;
    ring.advance();
  }
  if (wr != first) ring.publish();
  if (error != 0) *bad = wr;
  return error;
}

/// In ERR no message comes, and receives must flush: the kernel does it when it is led to ERR, once
/// more too. (It takes no POST_RECV from processes.) REQUIRES: the receive lock, so that nobody
/// leads the queue pair out of ERR meanwhile.
[[gnu::cold]] void flush_receives_locked(Qp& qp) noexcept {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  // A device that is gone has nobody to flush them.
  static_cast<void>(uverbs::modify_qp(qp, attr, IBV_QP_STATE));
}

/// Something went wrong on the device: was it here? REQUIRES: the receive lock.
[[gnu::cold]] void look_again_locked(Qp& qp, std::uint32_t troubles) noexcept {
  qp.troubles_seen = troubles;
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  // What cannot be asked is a device that is gone: nobody flushes there.
  static_cast<void>(uverbs::query_qp(qp, attr, IBV_QP_STATE, init));
}

}  // namespace

void flush_what_waits(void* object) {
  Qp& qp = static_cast<Qp&>(*static_cast<uverbs::Qp*>(object));
  const LockGuard<SpinLock> guard(qp.receive_lock);
  if (!qp.receive_ring.mapped()) return;
  look_again_locked(qp, uverbs::context_of(qp).troubles.load(std::memory_order_relaxed));
  if (qp.plain.state == IBV_QPS_ERR) flush_receives_locked(qp);
}

int post_recv(ibv_qp* handle, ibv_recv_wr* wr, ibv_recv_wr** bad) noexcept {
  Qp& qp = static_cast<Qp&>(verbatim::Qp::from(handle));
  LockGuard<SpinLock> guard(qp.receive_lock);
  // IBTA 10.8.3: not in RESET. With a shared receive queue there is no ring.
  if (qp.plain.state == IBV_QPS_RESET || !qp.receive_ring.mapped()) {
    *bad = wr;
    return EINVAL;
  }
  const int error = post_receives(qp.receive_ring, qp.max_recv_sge, wr, bad);
  const std::uint32_t troubles = uverbs::context_of(qp).troubles.load(std::memory_order_relaxed);
  if (troubles != qp.troubles_seen) [[unlikely]]
    look_again_locked(qp, troubles);
  if (qp.plain.state == IBV_QPS_ERR) [[unlikely]]
    flush_receives_locked(qp);
  return error;
}

int post_srq_recv(ibv_srq* handle, ibv_recv_wr* wr, ibv_recv_wr** bad) noexcept {
  Srq& srq = static_cast<Srq&>(verbatim::Srq::from(handle));
  LockGuard<SpinLock> guard(srq.lock);
  return post_receives(srq.ring, srq.max_sge, wr, bad);
}

}  // namespace verbatim::rxe
