// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/qp_make.hpp"

#include <bit>

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/context.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/qp_life.hpp"
#include "providers/shm/queues/shared_receive.hpp"
#include "providers/shm/queues/ud_role.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/verbs/strict.hpp"

namespace verbatim::shm {
namespace {

/// Messages whose shared receives a queue pair holds without asking for memory.
constexpr std::uint32_t kHeldAtFirst = 4;

}  // namespace

int take_number(Qp& qp) noexcept {
  Process& process = Process::get();
  std::uint32_t qpn;
  if (const int error = process.take_qpn(qp.index, qpn); error != 0) return error;
  qp.own = &process.segment().qps()[qp.index];
  qp.plain.qp_num = qpn;
  qp.plain.handle = qp.index;
  const int error = process.segment().back(qp.own, sizeof(QpRecord));
  if (error != 0) process.give_qpn(qp.index);
  return error;
}

std::uint32_t share_receives(Qp& qp, Srq& srq) noexcept {
  qp.srq = &srq;
  qp.in.held = make_held(kHeldAtFirst);
  qp.in.held_capacity = qp.in.held == nullptr ? 0 : kHeldAtFirst;
  // Every receive that a sender sees has its slot, also when nobody polls.
  return std::bit_ceil(srq.store.max == 0 ? 1u : srq.store.max);
}

void fill_record(const Qp& qp, std::uint32_t entries, std::uint32_t speaks_for) noexcept {
  QpRecord& own = *qp.own;
  own.tx_session.store(0, std::memory_order_relaxed);
  own.ring.store(0, std::memory_order_relaxed);
  own.stream_ring.store(0, std::memory_order_relaxed);
  own.rq_credits.store(0, std::memory_order_relaxed);
  own.asked.store(0, std::memory_order_relaxed);
  own.answered.store(0, std::memory_order_relaxed);
  own.answers.store(0, std::memory_order_relaxed);
  own.requests.store(0, std::memory_order_relaxed);
  store_relaxed(own.send_cq, qp.send_cq->number);
  own.stream_produced.store(0, std::memory_order_relaxed);
  store_relaxed(own.rq_entries, entries);
  const Srq* const inbox = qp.datagrams == nullptr ? nullptr : qp.datagrams->inbox;
  const std::uint16_t max_sge = inbox == nullptr ? 0 : inbox->store.max_sge;
  store_relaxed(own.rq_max_sge,
                qp.datagrams == nullptr ? qp.rq.store.max_sge : max_sge);  // 0: shares receives
  store_relaxed(own.pd, qp.pd_number);
  // An endpoint asks for none, and the place may have been a connection's.
  store_relaxed(own.access, 0);
  store_relaxed(own.srq, qp.srq == nullptr ? 0 : qp.srq->own_offset);
  store_relaxed(own.type, qp.plain.qp_type);
  store_relaxed(own.speaks_for, speaks_for);
  store_relaxed(own.endpoint_link, 0);
  store_relaxed(own.lacks, 0);
  store_relaxed(own.state, IBV_QPS_RESET);
  store_relaxed(own.sq_entries, qp.sq_entries);
  own.errors.store(0, std::memory_order_relaxed);
  own.polled.store(0, std::memory_order_relaxed);
  own.polled_seen = 0;
  store_relaxed(own.qkey, 0);
  own.domain = {};
  store_relaxed(own.device, Context::of(qp.plain.context).device.index);
  __atomic_store_n(&own.qpn, qp.plain.qp_num, __ATOMIC_RELEASE);
}

void set_constants(Qp& qp) noexcept {
  OwnSegment& segment = Process::get().segment();
  qp.own_regions = segment.regions();
  qp.own_region_capacity = segment.head().mr_capacity;
  qp.max_inline = kMaxInline;
  qp.is_strict = qp.posts_generally = is_strict();
  qp.may_lose = qp.plain.qp_type == IBV_QPT_UC || qp.plain.qp_type == IBV_QPT_UD;
  qp.headroom = qp.plain.qp_type == IBV_QPT_UD ? sizeof(ibv_grh) : 0;
}

void give_up(Qp& qp) noexcept {
  __atomic_store_n(&qp.own->qpn, 0u, __ATOMIC_RELEASE);
  Process::get().give_qpn(qp.index);
  free_qp(qp);
}

Qp* make_presence(ibv_context* context, ibv_qp_type type, XrcRole role, Cq& cq) noexcept {
  Qp* qp = make_nothrow<Qp>();
  if (qp == nullptr) return nullptr;
  const bool has_end = role != XrcRole::kQueue;
  if (has_end) qp->xrc_end = make_nothrow<XrcEnd>();
  if ((has_end && qp->xrc_end == nullptr) || take_number(*qp) != 0) {
    destroy_nothrow(qp->xrc_end);
    destroy_nothrow(qp);
    return nullptr;
  }
  qp->send_cq = qp->recv_cq = &cq;
  qp->pd_number = holder::kMaxPd;  // nobody's
  qp->plain.qp_type = type;
  qp->plain.context = context;
  qp->xrc = role;
  set_constants(*qp);
  reset_record(*qp);
  fill_record(*qp, 1, 0);
  return qp;
}

Qp* make_endpoint(Qp& parent, Srq* srq) noexcept {
  Qp* endpoint = make_nothrow<Qp>();
  if (endpoint == nullptr) return nullptr;
  if (take_number(*endpoint) != 0) {
    destroy_nothrow(endpoint);
    return nullptr;
  }
  endpoint->ep.parent = &parent;
  if (parent.srq != nullptr) endpoint->received = &parent.srq->own->taken;
  endpoint->send_cq = parent.send_cq;
  endpoint->recv_cq = parent.recv_cq;
  endpoint->pd_number = parent.pd_number;
  endpoint->plain.qp_type = parent.plain.qp_type;
  endpoint->plain.context = parent.plain.context;
  set_constants(*endpoint);
  std::uint32_t entries = 1;
  if (srq != nullptr) entries = share_receives(*endpoint, *srq);
  reset_record(*endpoint);
  fill_record(*endpoint, entries, parent.plain.qp_num);
  store_relaxed(endpoint->own->rq_psn, 0);
  store_relaxed(endpoint->own->sq_psn, 0);
  endpoint->plain.qp_num = parent.plain.qp_num;  // what completions say
  if (srq != nullptr && endpoint->in.held == nullptr) {
    give_up(*endpoint);
    return nullptr;
  }
  return endpoint;
}

}  // namespace verbatim::shm
