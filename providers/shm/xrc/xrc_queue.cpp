// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/xrc/xrc_queue.hpp"

#include <cerrno>

#include "providers/shm/endpoints/endpoint.hpp"
#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/qp_kind.hpp"
#include "providers/shm/queues/qp_life.hpp"
#include "providers/shm/queues/qp_make.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"

namespace verbatim::shm {
namespace {

/// The record of `qpn` in that process, if it is one of a queue pair of this type.
const QpRecord* record_of(const Peer& peer, std::uint32_t qpn, std::uint32_t type) noexcept {
  const std::uint32_t index = Process::index_in(peer, qpn);
  if (index >= peer.segment.qp_capacity()) return nullptr;
  const QpRecord& record = peer.segment.qps()[index];
  const bool is_it = load_relaxed(record.qpn) == qpn && load_relaxed(record.type) == type &&
                     load_relaxed(record.speaks_for) == 0;
  return is_it ? &record : nullptr;
}

/// The target by which the sender of an endpoint comes to `queue`.
bool find_target(const Qp& queue, const Peer& from, const QpRecord& endpoint,
                 XrcTarget& out) noexcept {
  const std::uint32_t initiator = load_relaxed(endpoint.speaks_for);
  const QpRecord* sender = record_of(from, initiator, IBV_QPT_XRC_SEND);
  if (sender == nullptr) return false;
  Process& process = Process::get();
  out.qpn = load_relaxed(sender->dest_qpn);
  out.owner = process.hold_peer(out.qpn);
  if (out.owner == nullptr) {
    process.want_peer(out.qpn);  // it will ask again
    return false;
  }
  out.record = record_of(*out.owner, out.qpn, IBV_QPT_XRC_RECV);
  if (out.record != nullptr && out.owner->alive.load(std::memory_order_acquire) &&
      load_relaxed(out.record->dest_qpn) == initiator &&
      out.record->accepts.load(std::memory_order_acquire) != 0 &&
      shares_domain(*out.record, *queue.own))
    return true;
  process.release_peer(*out.owner);
  out = {};
  return false;
}

/// What the target of an incoming endpoint allows now. False: it has ended.
bool find_rights_of_target(const Qp& endpoint, std::uint32_t& rights) noexcept {
  const QpRecord& target = *endpoint.ep.record;
  const bool is_it = load_relaxed(target.qpn) == endpoint.plain.qp_num &&
                     target.accepts.load(std::memory_order_acquire) != 0;
  if (is_it) rights = load_relaxed(target.access);
  return is_it;
}

constinit const QpKind kXrcQueueKind{
    .accept = accept_endpoints, .find_target = find_target, .find_rights = find_rights_of_target};

}  // namespace

int present_queue(Srq& srq, ibv_context* context, Cq& cq, const XrcDomainId& domain) noexcept {
  Qp* queue = make_presence(context, IBV_QPT_XRC_RECV, XrcRole::kQueue, cq);
  if (queue == nullptr) return ENOMEM;
  queue->kind = &kXrcQueueKind;
  queue->endpoints = make_nothrow<EndpointTable>();
  if (queue->endpoints == nullptr) {
    LockGuard<Mutex> guard(live.mutex);
    park(*queue);
    return ENOMEM;
  }
  queue->srq = &srq;
  queue->pd_number = srq.keys.pd;
  queue->may_lose = true;  // nobody's death concerns it
  store_relaxed(queue->own->pd, srq.keys.pd);
  store_relaxed(queue->own->type, QpRecord::kXrcQueue);
  store_relaxed(queue->own->srq, srq.own_offset);
  show_domain(*queue->own, domain);
  queue->mode.store(IBV_QPS_RTR, std::memory_order_release);
  srq.presence = queue;
  enlist(*queue);
  // Publishes the record; pairs with the load in find_destination().
  queue->own->accepts.store(next_session(), std::memory_order_release);
  return 0;
}

int withdraw_queue(Srq& srq) noexcept {
  Qp& queue = *srq.presence;
  {
    // From here on the service thread lets nobody in, and leaves the endpoints alone.
    LockGuard<Mutex> guard(live.mutex);
    queue.mode.store(IBV_QPS_RESET, std::memory_order_release);
    queue.own->accepts.store(0, std::memory_order_seq_cst);
  }
  stop_accepting(queue);
  for (Qp* endpoint = queue.endpoints->incoming; endpoint != nullptr;
       endpoint = endpoint->ep.next) {
    if (await_peer_of(*endpoint)) continue;
    log_error(
        "ibv_destroy_srq: XRC SRQ 0x%06x: a peer process was stopped in the middle of a copy to "
        "this process's memory: continue it and try again",
        queue.own->qpn);
    return EBUSY;
  }
  close_incoming(queue);
  LockGuard<Mutex> guard(live.mutex);
  delist_locked(queue);
  park(queue);
  srq.presence = nullptr;
  return 0;
}

int get_srq_num(verbatim::Srq& handle, std::uint32_t& number) noexcept {
  const Srq& srq = static_cast<Srq&>(handle);
  if (srq.presence == nullptr) {
    log_refusal("ibv_get_srq_num: only XRC shared receive queues have numbers");
    return EINVAL;
  }
  number = srq.presence->own->qpn;
  return 0;
}

}  // namespace verbatim::shm
