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

namespace {

/// False: there are none.
bool show_places(Qp& qp, std::uint64_t place) noexcept {
  if (place == 0) return false;
  // Publishes them; pairs with the load in find_receives().
  qp.own->rq_credits.store(place, std::memory_order_release);
  return true;
}

}  // namespace

int post_recv_slowly(Qp& qp, const ibv_recv_wr& wr) noexcept {
  if (qp.mode.load(std::memory_order_acquire) == IBV_QPS_RESET) return EINVAL;
  if (qp.xrc != XrcRole::kNone) return EINVAL;
  const std::uint64_t index = qp.rq.tail.load(std::memory_order_relaxed);
  const std::uint64_t waiting = index - qp.in.head.load(std::memory_order_acquire);
  const bool is_full = waiting >= qp.rq.store.max && qp.rq.may_grow();
  if (const int error = qp.rq.store.check(wr, is_full ? 0 : waiting); error != 0) return error;
  // The queue's memory comes with the first receive, and more when so many wait.
  if (qp.rq.store.credits == nullptr) {
    if (!show_places(qp, qp.rq.make(qp.memory))) return ENOMEM;
  } else if (is_full && !show_places(qp, qp.rq.grow(qp.memory, qp.recv_cq->lock, qp.in.head))) {
    return ENOMEM;
  }
  const std::uint64_t credit =
      qp.rq.store.fill(index, wr, {qp.own_regions, qp.own_region_capacity, qp.pd_number});
  qp.rq.tail.store(index + 1, std::memory_order_release);
  qp.rq.store.credits[qp.rq.store.at(index)].store(credit, std::memory_order_release);
  announce_if_failed(qp);
  return 0;
}

}  // namespace verbatim::shm
