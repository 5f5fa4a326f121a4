// SPDX-License-Identifier: BSD-2-Clause
#include "providers/rxe/left_behind.hpp"

#include "providers/rxe/objects.hpp"
#include "providers/rxe/ring_fast.hpp"
#include "providers/uverbs/removal.hpp"
#include "runtime/verbs/opcodes.hpp"

namespace verbatim::rxe {
namespace {

void flush(const SendElement& element, std::uint32_t qp_num, ibv_wc& wc) noexcept {
  uverbs::write_flushed(wc, element.wr.wr_id, qp_num, completed_as(element.wr.opcode));
}
void flush(const ReceiveElement& element, std::uint32_t qp_num, ibv_wc& wc) noexcept {
  uverbs::write_flushed(wc, element.wr_id, qp_num, IBV_WC_RECV);
}

/// REQUIRES: the lock of the ring's owner.
template <class Element>
int flush_ring_locked(const Queue& queue, std::uint32_t qp_num, int entries, ibv_wc* wc) noexcept {
  Consumer ring(queue);
  int found = 0;
  for (; found < entries && ring.count() != 0; ring.advance())
    flush(ring.front<Element>(), qp_num, wc[found++]);
  if (found != 0) ring.give_back();
  return found;
}

int flush_sends(Qp& qp, int entries, ibv_wc* wc) noexcept {
  // Its holder may be this very thread, between ibv_wr_start and ibv_wr_complete.
  if (!qp.send_lock.try_lock()) return 0;
  const int found = flush_ring_locked<SendElement>(qp.send_ring, qp.plain.qp_num, entries, wc);
  qp.send_lock.unlock();
  return found;
}

int flush_receives(Qp& qp, int entries, ibv_wc* wc) noexcept {
  const LockGuard guard(qp.receive_lock);
  if (!qp.receive_ring.mapped()) return 0;
  return flush_ring_locked<ReceiveElement>(qp.receive_ring, qp.plain.qp_num, entries, wc);
}

}  // namespace

int flush_left_behind(Cq& cq, int entries, ibv_wc* wc) noexcept {
  int found = 0;
  uverbs::context_of(cq).objects.each_named(uverbs::Kind::kQp, [&](void* object) {
    Qp& qp = static_cast<Qp&>(*static_cast<uverbs::Qp*>(object));
    if (qp.plain.send_cq == &cq.plain) found += flush_sends(qp, entries - found, wc + found);
    if (qp.plain.recv_cq == &cq.plain) found += flush_receives(qp, entries - found, wc + found);
  });
  return found;
}

}  // namespace verbatim::rxe
