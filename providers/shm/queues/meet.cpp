// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/meet.hpp"

#include "providers/shm/fabric/process.hpp"

namespace verbatim::shm {
const QpRecord* record_in(const Peer& peer, const Qp& qp) noexcept {
  const std::uint32_t qpn = load_relaxed(qp.own->dest_qpn);
  const std::uint32_t index = Process::index_in(peer, qpn);
  if (index >= peer.segment.qp_capacity()) return nullptr;
  const QpRecord* record = &peer.segment.qps()[index];
  if (load_relaxed(record->qpn) != qpn || load_relaxed(record->dest_qpn) != qp.own->qpn)
    return nullptr;
  return record;
}

void forget_peer(Qp& qp) noexcept {
  if (Peer* peer = qp.met.exchange(nullptr, std::memory_order_acq_rel); peer != nullptr)
    Process::get().release_peer(*peer);
}

Peer* find_connected_peer(Qp& qp) noexcept {
  Peer* met = qp.met.load(std::memory_order_acquire);
  if (met != nullptr) return met;
  Process& process = Process::get();
  Peer* const found = process.hold_peer(load_relaxed(qp.own->dest_qpn));
  if (found == nullptr) return nullptr;
  // Numbers come back, and can be claimed by anybody: it is the owner that we mean if it means us,
  // or if it lives and the number's name led to it. Else the owner is somebody we have yet to meet.
  const bool ours = record_in(*found, qp) != nullptr ||
                    (found->alive.load(std::memory_order_acquire) &&
                     (found->self || found->reached_by_name(load_relaxed(qp.own->dest_qpn))));
  if (ours && qp.met.compare_exchange_strong(met, found, std::memory_order_acq_rel)) return found;
  process.release_peer(*found);
  return met;
}

void wake_service_of_peer(Qp& qp) noexcept {
  const std::uint32_t index = Process::index_in(*qp.link.peer, qp.own->dest_qpn);
  qp.link.peer->segment.doorbells().service.ring(index);
  qp.link.peer->wake_service();
}

}  // namespace verbatim::shm
