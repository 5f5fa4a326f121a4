// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/xrc/xrc_send.hpp"

#include "providers/shm/endpoints/endpoint.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/send_lock.hpp"
#include "providers/shm/transfer/request_ring.hpp"
#include "providers/shm/transfer/send_fast.hpp"
#include "providers/shm/transfer/send_queue.hpp"
#include "providers/shm/transfer/send_wait.hpp"
#include "providers/shm/xrc/xrc_domain.hpp"

namespace verbatim::shm {
namespace {

/// IBTA A14.5: no such queue, or none of the target's domain.
Step no_such_queue() noexcept { return Step::fails(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR); }

/// The other half is still ours, and takes no more.
bool has_failed(const Qp& endpoint) noexcept {
  return load_relaxed(endpoint.link.remote->qpn) == load_relaxed(endpoint.own->dest_qpn) &&
         load_relaxed(endpoint.link.remote->dest_qpn) == endpoint.own->qpn;
}

/// Finds the endpoint to `srqn`, led to its queue. Else what becomes of the request.
Step find_way(Qp& qp, std::uint32_t srqn, Qp*& way) noexcept {
  for (int tries = 0; tries < 2; ++tries) {
    Qp* endpoint = find_endpoint(qp, srqn);
    if (endpoint == nullptr) endpoint = open_endpoint(qp, srqn);
    if (endpoint == nullptr) return Step::waits(Wait::kMemory);
    const bool was_there = endpoint->link.remote != nullptr;
    if (was_there && is_dead(*endpoint))
      return Step::fails(IBV_WC_RETRY_EXC_ERR, IBV_EVENT_QP_REQ_ERR);
    const Wait wait = reach_destination(*endpoint);
    if (wait == Wait::kNothing) {
      way = endpoint;
      return Step::done();
    }
    // Of a peer the owner's service thread is to let us in.
    if (wait != Wait::kReceive) return Step::waits(wait == Wait::kPeer ? Wait::kService : wait);
    if (!was_there) return no_such_queue();
    if (has_failed(*endpoint) || endpoint->sq.progress.streaming)
      return Step::fails(IBV_WC_REM_OP_ERR, IBV_EVENT_QP_REQ_ERR);
    abandon_endpoint(qp, *endpoint);  // the queue is gone; its number may be another's now
  }
  return no_such_queue();
}

/// What the target must allow. The keys' rights, and FLUSH's, are judged where they are looked up.
std::uint32_t right_for(unsigned opcode) noexcept {
  return opcode == IBV_WR_FLUSH ? 0 : remote_access_for(opcode, 0);
}

Step send_to_queue(Qp& qp, SendLock&, const PendingSend& send, const LocalRange* local) noexcept {
  const std::uint32_t need = right_for(send.opcode);
  if ((load_relaxed(qp.link.remote->access) & need) != need)
    return Step::fails(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  Qp* endpoint = nullptr;
  if (const Step found = find_way(qp, send.srqn, endpoint); found.kind != Step::Kind::kDone)
    return found;
  endpoint->out.rnr_retry = qp.out.rnr_retry;
  const std::uint64_t moves = endpoint->asking.moves;
  Step step;
  {
    // The word that the queue's process watches while it deregisters memory; the target's process
    // watches our own, which is odd all the while.
    SendLock lock(*endpoint);
    step = perform(*endpoint, lock, send, local);
  }
  if (step.kind == Step::Kind::kWait) {
    // It came further: what is left has a time of its own.
    if (endpoint->sq.progress.asked != qp.sq.progress.asked || endpoint->asking.moves != moves)
      qp.sq.progress.wait = Wait::kNothing;
    qp.sq.progress.asked = endpoint->sq.progress.asked;
    return step;
  }
  endpoint->sq.progress.clear();
  forget_asked(*endpoint);
  // One of the queue's receives says so to its process; the target has none that could.
  if (step.tell == kToldInReceive) step.tell = IBV_EVENT_QP_REQ_ERR;
  return step;
}

bool address_queue(const Qp&, const ibv_send_wr& wr, PendingSend& send) noexcept {
  send.srqn = wr.qp_type.xrc.remote_srqn;
  return false;
}

bool is_queue_of_domain(const Qp& initiator, const QpRecord& record) noexcept {
  return load_relaxed(record.type) == QpRecord::kXrcQueue &&
         shares_domain(record, *initiator.link.remote);
}

}  // namespace

bool send_to_queue_now(Qp& qp, const SendLock& lock, const ibv_send_wr& wr) noexcept {
  if ((wr.opcode != IBV_WR_SEND && wr.opcode != IBV_WR_SEND_WITH_IMM) || qp.has_queued ||
      qp.mode.load(std::memory_order_relaxed) != IBV_QPS_RTS || wr.sg_list == nullptr ||
      !qp.has_place())
    return false;
  if (qp.link.remote == nullptr || is_dead(qp) ||
      qp.link.remote->accepts.load(std::memory_order_acquire) != qp.link.remote_session)
    return false;
  Qp* endpoint = find_endpoint(qp, wr.qp_type.xrc.remote_srqn);
  if (endpoint == nullptr || endpoint->link.remote == nullptr || is_dead(*endpoint) ||
      endpoint->link.remote->accepts.load(std::memory_order_acquire) !=
          endpoint->link.remote_session)
    return false;
  // Into our own ring: no lock of the endpoint's, since no memory of the peer's is touched.
  std::uint32_t bytes;
  if (!put_shared_now(*endpoint, qp, wr, 0, 0, bytes)) return false;
  complete_now(qp, lock, wr, bytes);
  return true;
}

constinit const QpKind kXrcInitiatorKind{
    .address = address_queue, .send = send_to_queue, .is_destination = is_queue_of_domain};

}  // namespace verbatim::shm
