// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/receive/receive_place.hpp"

#include <cstdlib>

#include "providers/shm/queues/shared_receive.hpp"

namespace verbatim::shm {
namespace {

Receive view(const TakenReceive& taken) noexcept {
  return {taken.wr_id, taken.sges, taken.num_sge};
}

}  // namespace

bool receive_for(Qp& qp, std::uint64_t index, TakenReceive& scratch, Receive& out) noexcept {
  if (qp.srq == nullptr) {
    if (index == qp.rq.tail.load(std::memory_order_acquire)) return false;
    out = qp.rq.store.receive(index);
    return true;
  }
  if (const HeldReceive* held = held_for(qp, index); held != nullptr) {
    out = view(held->receive);
    return true;
  }
  if (!take_receive(qp, scratch)) return false;
  out = view(scratch);
  return true;
}

void hold(Qp& qp, std::uint64_t index, const TakenReceive& taken) noexcept {
  if (qp.srq == nullptr || held_for(qp, index) != nullptr) return;
  qp.in.held[index & (qp.in.held_capacity - 1)] = {index, taken};
  ++qp.in.held_count;
}

bool can_hold(Qp& qp, std::uint64_t index) noexcept {
  const std::uint64_t head = qp.in.head.load(std::memory_order_relaxed);
  if (qp.srq == nullptr || index - head < qp.in.held_capacity) return true;
  const std::uint32_t capacity = 2 * qp.in.held_capacity;
  HeldReceive* more = make_held(capacity);
  if (more == nullptr) return false;
  for (std::uint64_t i = head; i != head + qp.in.held_capacity; ++i)
    if (const HeldReceive* held = held_for(qp, i); held != nullptr)
      more[i & (capacity - 1)] = *held;
  std::free(qp.in.held);
  qp.in.held = more;
  qp.in.held_capacity = capacity;
  return index - head < capacity;
}

ibv_wc_status receive_ranges(const Qp& qp, const Receive& receive, std::uint64_t bytes,
                             LocalRange* out) noexcept {
  const KeyHolder keys = qp.srq != nullptr ? qp.srq->keys : qp.keys();
  return find_places(receive.sges, receive.num_sge, bytes, out,
                     [&](const ReceiveSge& sge, std::uint64_t used, LocalRange& place) noexcept {
                       return find_local_range(keys, sge.lkey, sge.address, used,
                                               IBV_ACCESS_LOCAL_WRITE, place);
                     });
}

}  // namespace verbatim::shm
