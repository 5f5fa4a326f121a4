// SPDX-License-Identifier: BSD-2-Clause
//
// Posting receives, the general way: the first one, several SGEs, null memory, bad keys (which the
// message learns of), and the inbox of a UD queue pair.
#include <cerrno>

#include "providers/shm/queues/cq_events.hpp"
#include "providers/shm/queues/shared_posting.hpp"
#include "providers/shm/queues/shared_receive.hpp"
#include "providers/shm/queues/ud_role.hpp"
#include "providers/shm/receive/receive_fast.hpp"

namespace verbatim::shm {

int post_to_inbox(Qp& qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) noexcept {
  if (wr == nullptr) return 0;
  if (qp.headroom == 0 || qp.plain.srq != nullptr ||
      qp.mode.load(std::memory_order_acquire) == IBV_QPS_RESET) {
    *bad_wr = wr;
    return EINVAL;
  }
  const int error = post_shared(*qp.srq, wr, bad_wr);
  announce_if_failed(qp);
  return error;
}

int post_recv_slowly(Qp& qp, const ibv_recv_wr& wr) noexcept {
  if (qp.mode.load(std::memory_order_acquire) == IBV_QPS_RESET) return EINVAL;
  if (qp.xrc != XrcRole::kNone) return EINVAL;
  const std::uint64_t index = qp.rq.tail.load(std::memory_order_relaxed);
  const std::uint64_t waiting = index - qp.in.head.load(std::memory_order_acquire);
  if (const int error = qp.rq.store.check(wr, waiting); error != 0) return error;
  if (qp.rq.store.credits == nullptr) {
    // The queue's memory comes with the first receive.
    const std::uint64_t offset = qp.rq.store.make(qp.memory);
    if (offset == 0) return ENOMEM;
    // Publishes the queue; pairs with the load in attach().
    qp.own->rq_credits.store(offset, std::memory_order_release);
  }
  const std::uint64_t credit =
      qp.rq.store.fill(index, wr, {qp.own_regions, qp.own_region_capacity, qp.pd_number});
  qp.rq.tail.store(index + 1, std::memory_order_release);
  qp.rq.store.credits[qp.rq.store.at(index)].store(credit, std::memory_order_release);
  announce_if_failed(qp);
  return 0;
}

}  // namespace verbatim::shm
