// SPDX-License-Identifier: BSD-2-Clause
//
// How a queue pair comes to be: what is asked held against what there is, a number, a record that
// says so to peers.
#include <bit>
#include <cerrno>

#include "providers/shm/context.hpp"
#include "providers/shm/domain.hpp"
#include "providers/shm/fabric/node.hpp"
#include "providers/shm/lane.hpp"
#include "providers/shm/live.hpp"
#include "providers/shm/qp.hpp"
#include "providers/shm/receive.hpp"
#include "providers/shm/region_fast.hpp"
#include "providers/shm/send_queue.hpp"
#include "providers/shm/work_calls.hpp"
#include "providers/shm/xrc_target.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/verbs/qp_values.hpp"
#include "runtime/verbs/strict.hpp"

namespace verbatim::shm {
namespace {

/// Messages whose shared receives a queue pair holds without asking for memory.
constexpr std::uint32_t kHeldAtFirst = 4;

int check_caps(const ibv_qp_init_attr_ex& attr) noexcept {
  const ibv_qp_cap& cap = attr.cap;
  const bool shares = attr.srq != nullptr;  // its own receive queue is not asked for then
  const struct {
    const char* name;
    std::uint32_t asked, limit;
  } limits[] = {{"max_send_wr", cap.max_send_wr, kMaxWr},
                {"max_recv_wr", shares ? 0 : cap.max_recv_wr, kMaxWr},
                {"max_send_sge", cap.max_send_sge, kMaxSge},
                {"max_recv_sge", shares ? 0 : cap.max_recv_sge, kMaxSge},
                {"max_inline_data", cap.max_inline_data, kMaxInline}};
  for (const auto& limit : limits) {
    if (limit.asked <= limit.limit) continue;
    log_refusal_of(limit.name, "create_qp: %s %u asked, shm has %u", limit.name, limit.asked,
                   limit.limit);
    return EINVAL;
  }
  return 0;
}

void grant_caps(ibv_qp_init_attr_ex& attr) noexcept {
  ibv_qp_cap& cap = attr.cap;
  cap.max_inline_data = kMaxInline;
  if (cap.max_send_sge == 0) cap.max_send_sge = 1;
  if (cap.max_send_wr == 0) cap.max_send_wr = 1;
  if (cap.max_recv_sge == 0) cap.max_recv_sge = 1;
  if (attr.srq != nullptr || attr.qp_type == IBV_QPT_XRC_SEND)
    cap.max_recv_wr = cap.max_recv_sge = 0;
}

/// A number for it, and memory behind its record.
int take_number(Qp& qp) noexcept {
  Node& node = Node::get();
  std::uint32_t qpn;
  if (const int error = node.take_qpn(qp.index, qpn); error != 0) return error;
  qp.own = &node.segment().qps()[qp.index];
  qp.plain.qp_num = qpn;
  qp.plain.handle = qp.index;
  const int error = node.segment().back(qp.own, sizeof(QpRecord));
  if (error != 0) node.give_qpn(qp.index);
  return error;
}

std::uint32_t share_receives(Qp& qp, Srq& srq) noexcept {
  qp.srq = &srq;
  qp.held = make_held(kHeldAtFirst);
  qp.held_capacity = qp.held == nullptr ? 0 : kHeldAtFirst;
  // Every receive that a sender sees has its slot, also when nobody polls.
  return std::bit_ceil(srq.store.max == 0 ? 1u : srq.store.max);
}

/// Where its receives come from. Entries of the ring in which senders put messages for it.
std::uint32_t prepare_receiving(Qp& qp, const ibv_qp_init_attr_ex& attr) noexcept {
  if (qp.datagrams != nullptr) {
    qp.srq = attr.srq != nullptr ? &Srq::from(attr.srq) : qp.datagrams->inbox;
    return 1;  // nothing comes here but through lanes
  }
  if (attr.srq == nullptr) {
    const std::uint32_t entries =
        std::bit_ceil(attr.cap.max_recv_wr == 0 ? 1u : attr.cap.max_recv_wr);
    qp.rq.max = attr.cap.max_recv_wr;
    qp.rq.max_sge = static_cast<std::uint16_t>(attr.cap.max_recv_sge);
    qp.rq.resize(static_cast<std::uint32_t>(std::countr_zero(entries)));
    return entries;
  }
  return share_receives(qp, Srq::from(attr.srq));
}

void fill_record(const Qp& qp, std::uint32_t entries, std::uint32_t speaks_for) noexcept {
  QpRecord& own = *qp.own;
  own.tx_session.store(0, std::memory_order_relaxed);
  own.ring.store(0, std::memory_order_relaxed);
  own.window.store(0, std::memory_order_relaxed);
  own.rq_credits.store(0, std::memory_order_relaxed);
  own.asked.store(0, std::memory_order_relaxed);
  own.answered.store(0, std::memory_order_relaxed);
  own.answers.store(0, std::memory_order_relaxed);
  own.requests.store(0, std::memory_order_relaxed);
  poke(own.send_cq, qp.send_cq->number);
  own.stream_produced.store(0, std::memory_order_relaxed);
  poke(own.rq_entries, entries);
  const Srq* const inbox = qp.datagrams == nullptr ? nullptr : qp.datagrams->inbox;
  const std::uint16_t max_sge = inbox == nullptr ? 0 : inbox->store.max_sge;
  poke(own.rq_max_sge, qp.datagrams == nullptr ? qp.rq.max_sge : max_sge);  // 0: shares receives
  poke(own.pd, qp.pd_number);
  poke(own.access, 0);  // a lane asks for none, and the place may have been a connection's
  poke(own.srq, qp.srq == nullptr ? 0 : qp.srq->own_offset);
  poke(own.type, qp.plain.qp_type);
  poke(own.speaks_for, speaks_for);
  poke(own.lane, 0);
  poke(own.lacks, 0);
  poke(own.state, IBV_QPS_RESET);
  poke(own.sq_entries, qp.sq_entries);
  own.errors.store(0, std::memory_order_relaxed);
  own.polled.store(0, std::memory_order_relaxed);
  poke(own.qkey, 0);
  own.domain = {};
  poke(own.device, Context::of(qp.plain.context).device.index);
  __atomic_store_n(&own.qpn, qp.plain.qp_num, __ATOMIC_RELEASE);
}

void set_constants(Qp& qp) noexcept {
  OwnSegment& segment = Node::get().segment();
  qp.own_regions = segment.regions();
  qp.own_region_capacity = segment.head().mr_capacity;
  qp.max_inline = kMaxInline;
  qp.is_strict = qp.posts_generally = is_strict();
  qp.may_lose = qp.plain.qp_type == IBV_QPT_UC || qp.plain.qp_type == IBV_QPT_UD;
  qp.headroom = qp.plain.qp_type == IBV_QPT_UD ? sizeof(ibv_grh) : 0;
}

int prepare_datagrams(Qp& qp, const ibv_qp_init_attr_ex& attr) noexcept {
  qp.book = qp.datagrams = make_nothrow<Datagrams>();
  if (qp.datagrams == nullptr) return ENOMEM;
  if (attr.srq != nullptr) return 0;
  qp.datagrams->inbox =
      make_srq(attr.cap.max_recv_wr, attr.cap.max_recv_sge, qp.pd_number, qp.memory);
  return qp.datagrams->inbox == nullptr ? ENOMEM : 0;
}

int prepare_lanes(Qp& qp, const ibv_qp_init_attr_ex& attr) noexcept {
  if (attr.qp_type == IBV_QPT_UD) return prepare_datagrams(qp, attr);
  if (attr.qp_type != IBV_QPT_XRC_SEND) return 0;
  qp.xrc = XrcRole::kInitiator;
  qp.book = make_nothrow<LaneBook>();
  return qp.book == nullptr ? ENOMEM : 0;
}

/// What is asked for beside the queues and cannot be had.
struct LackingExtra {
  bool is_asked_for;
  const char* why;
};

int refuse_lacking_extras(const ibv_qp_init_attr_ex& attr) noexcept {
  const LackingExtra extras[] = {
      {asks_for_hashing(attr), "receives are spread by no hash (RSS)"},
      {attr.max_tso_header != 0, "messages are not segmented (max_tso_header)"},
      {(attr.create_flags & ~std::uint32_t{IBV_QP_CREATE_BLOCK_SELF_MCAST_LB}) != 0,
       "of create_flags there is BLOCK_SELF_MCAST_LB"},
  };
  for (const LackingExtra& extra : extras) {
    if (!extra.is_asked_for) continue;
    log_refusal_of(extra.why, "shm: create_qp: %s; not supported", extra.why);
    return EOPNOTSUPP;
  }
  return 0;
}

int refuse_type(ibv_qp_type type) noexcept {
  log_refusal("shm: create_qp: queue pairs are RC, UC, UD or XRC; type %d is not supported",
              static_cast<int>(type));
  return EOPNOTSUPP;
}

/// Room for receives is reserved. What else comes with its first use: a program's allocators are
/// asked while a queue is created.
bool take_queues(Qp& qp) noexcept {
  const bool has_receives = qp.srq == nullptr && qp.xrc == XrcRole::kNone;
  if (has_receives && !qp.rq.reserve()) return false;
  if (!qp.memory.is_of_program()) return true;
  if (!make_queue(qp) || !make_inline_store(qp)) return false;
  return !has_receives || qp.rq.make_own(qp.memory);
}

/// Undoes take_number().
void give_up(Qp& qp) noexcept {
  __atomic_store_n(&qp.own->qpn, 0u, __ATOMIC_RELEASE);
  Node::get().give_qpn(qp.index);
  free_qp(qp);
}

}  // namespace

int create_qp(verbatim::Context& context, ibv_qp_init_attr_ex& attr, verbatim::Qp** out) noexcept {
  if (Node::get().has_failed()) return EIO;
  Node::get().await_names();
  switch (attr.qp_type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_UD:
      break;
    case IBV_QPT_XRC_SEND:  // it receives nothing
      attr.srq = nullptr;
      attr.recv_cq = attr.send_cq;
      attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
      break;
    case IBV_QPT_XRC_RECV:
      return create_target(context, attr, out);
    default:  // RAW_PACKET and DRIVER: whatever is no type was refused before
      return refuse_type(attr.qp_type);
  }
  if (const int error = refuse_lacking_extras(attr); error != 0) return error;
  if (attr.send_cq == nullptr || attr.recv_cq == nullptr) return EINVAL;
  if (const int error = check_caps(attr); error != 0) return error;
  if (const int error = check_work_calls(attr); error != 0) return error;

  retire_parked();
  Qp* qp = make_nothrow<Qp>();
  if (qp == nullptr) return ENOMEM;
  if (const int error = take_number(*qp); error != 0) {
    destroy_nothrow(qp);
    return error;
  }
  grant_caps(attr);
  qp->send_cq = static_cast<Cq*>(&verbatim::Cq::from(attr.send_cq));
  qp->recv_cq = static_cast<Cq*>(&verbatim::Cq::from(attr.recv_cq));
  qp->pd_number = attr.pd->handle;
  qp->memory = QueueMemory(attr.pd, VBT_RESOURCE_QP);
  qp->sq_entries = attr.cap.max_send_wr;
  qp->max_send_sge = static_cast<std::uint16_t>(attr.cap.max_send_sge);
  qp->signal_all = attr.sq_sig_all != 0;
  qp->plain.qp_type = attr.qp_type;
  qp->plain.context = context.handle();
  set_constants(*qp);
  int error = prepare_lanes(*qp, attr);
  const std::uint32_t entries = prepare_receiving(*qp, attr);
  if (qp->srq != nullptr && qp->held == nullptr && qp->datagrams == nullptr) error = ENOMEM;
  reset_record(*qp);
  fill_record(*qp, entries, 0);
  join_domain(*qp, attr.pd);
  qp->set_detour(Qp::kToShared, qp->datagrams != nullptr);
  if (error == 0) error = wire_work_calls(*qp, attr);
  if (error == 0 && !take_queues(*qp)) error = ENOMEM;
  if (error == 0) error = add_member(*qp->recv_cq, *qp);
  if (error != 0) {
    give_up(*qp);
    return error;
  }
  enlist(*qp);
  *out = qp;
  return 0;
}

Qp* make_presence(ibv_context* context, ibv_qp_type type, XrcRole role, Cq& cq) noexcept {
  Qp* qp = make_nothrow<Qp>();
  if (qp == nullptr) return nullptr;
  if (take_number(*qp) != 0) {
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

Qp* make_lane(Qp& face, Srq* srq) noexcept {
  Qp* lane = make_nothrow<Qp>();
  if (lane == nullptr) return nullptr;
  if (take_number(*lane) != 0) {
    destroy_nothrow(lane);
    return nullptr;
  }
  lane->lane.face = &face;
  if (face.srq != nullptr) lane->received = &face.srq->own->taken;
  lane->send_cq = face.send_cq;
  lane->recv_cq = face.recv_cq;
  lane->pd_number = face.pd_number;
  lane->plain.qp_type = face.plain.qp_type;
  lane->plain.context = face.plain.context;
  set_constants(*lane);
  std::uint32_t entries = 1;
  if (srq != nullptr) entries = share_receives(*lane, *srq);
  reset_record(*lane);
  fill_record(*lane, entries, face.plain.qp_num);
  poke(lane->own->rq_psn, 0);
  poke(lane->own->sq_psn, 0);
  lane->plain.qp_num = face.plain.qp_num;  // what completions say
  if (srq != nullptr && lane->held == nullptr) {
    give_up(*lane);
    return nullptr;
  }
  return lane;
}

}  // namespace verbatim::shm
