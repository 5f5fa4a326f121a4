// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/diagnosis/xrc_failures.hpp"

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/queues/failure_log.hpp"
#include "providers/shm/queues/qp.hpp"
#include "providers/shm/xrc/xrc_domain.hpp"

namespace verbatim::shm {
namespace {

Cause judge_in(const Peer& owner, const Qp& qp, std::uint32_t srqn) noexcept {
  if (!owner.alive.load(std::memory_order_acquire)) return Cause::kQueueDead;
  const std::uint32_t index = Process::index_in(owner, srqn);
  if (index >= owner.segment.qp_capacity()) return Cause::kQueueGone;
  const QpRecord& queue = owner.segment.qps()[index];
  if (load_relaxed(queue.qpn) != srqn || load_relaxed(queue.type) != QpRecord::kXrcQueue ||
      queue.accepts.load(std::memory_order_acquire) == 0)
    return Cause::kQueueGone;
  if (qp.link.remote != nullptr && !shares_domain(queue, *qp.link.remote))
    return Cause::kQueueElsewhere;
  return load_relaxed(queue.lacks) != 0 ? Cause::kQueueLacks : Cause::kQueueSilent;
}

}  // namespace

void name_queue(Failure& failure, std::uint32_t srqn) noexcept {
  failure.srqn = srqn;
  Peer* const owner = Process::get().hold_peer(srqn);
  if (owner == nullptr) return;
  failure.queue = name_of(*owner);
  Process::get().release_peer(*owner);
}

Cause judge_queue(const Qp& qp, std::uint32_t srqn) noexcept {
  Peer* const owner = Process::get().hold_peer(srqn);
  if (owner == nullptr) return Cause::kQueueUnknown;
  const Cause cause = judge_in(*owner, qp, srqn);
  Process::get().release_peer(*owner);
  return cause;
}

}  // namespace verbatim::shm
