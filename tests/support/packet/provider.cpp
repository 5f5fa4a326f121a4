// SPDX-License-Identifier: BSD-2-Clause
// The slots: what the verbs do, by the parts.
#include "tests/support/packet/provider.hpp"

#include <algorithm>

#include "runtime/base/make_nothrow.hpp"
#include "runtime/base/scope_exit.hpp"
#include "runtime/verbs/software/qp_states.hpp"
#include "runtime/verbs/software/soft_comp_channel.hpp"
#include "runtime/verbs/software/soft_context.hpp"
#include "runtime/verbs/software/soft_device.hpp"
#include "runtime/verbs/software/soft_domains.hpp"
#include "tests/support/packet/objects.hpp"

namespace verbatim::packet {
namespace {

bool poll_one(Cq& cq, ibv_wc& wc) {
  const Stored* const stored = completions::take(cq);
  if (stored == nullptr) return false;
  wc = stored->wc;
  const auto found = world().queue_pairs.find(wc.qp_num);
  if (stored->is_send && found != world().queue_pairs.end() && found->second == stored->owner)
    found->second->freed = stored->number + 1;
  return true;
}

bool take(Cq& cq, ibv_wc& wc) noexcept {
  const LockGuard guard(world().lock);
  progress();
  return poll_one(cq, wc);
}

struct PacketVerbs : SharedReceiveVerbs<Srq>,
                     SoftAddressVerbs<Ah>,
                     SoftCompChannelVerbs,
                     SoftContextVerbs<Context>,
                     SoftDomainVerbs,
                     SoftPortVerbs {
  static constexpr const char* kName = "packet";
  using Context = packet::Context;
  using Mr = verbatim::Mr;
  using Cq = packet::Cq;
  using Qp = packet::Qp;

  static packet::Cq& own(verbatim::Cq& cq) { return static_cast<packet::Cq&>(cq); }
  static packet::Qp& own(verbatim::Qp& qp) { return static_cast<packet::Qp&>(qp); }
  static packet::Srq& own(verbatim::Srq& srq) { return static_cast<packet::Srq&>(srq); }

  static int list_devices(DeviceSink& sink) noexcept {
    return sink.add({.name = "packet0", .node_type = IBV_NODE_CA});
  }
  static int query_device(verbatim::Context&, ibv_device_attr_ex& attr) noexcept {
    describe_device(kLimits, attr);
    ibv_device_attr& a = attr.orig_attr;
    a.max_qp = a.max_cq = a.max_srq = 1 << 16;
    a.max_mr = kKeys - 1;
    a.max_qp_rd_atom = a.max_qp_init_rd_atom = 16;
    a.max_res_rd_atom = 1 << 20;
    return 0;
  }
  static int query_port(verbatim::Context&, std::uint8_t, ibv_port_attr& attr) noexcept {
    describe_port(true, false, attr);
    attr.max_msg_sz = 1u << 31;
    attr.lid = 1;
    return 0;
  }
  static int query_gid(verbatim::Context&, std::uint8_t, int index, ibv_gid_entry& entry) noexcept {
    if (index != 0) return EINVAL;
    entry.gid = own_gid();
    return 0;
  }

  static int reg_mr(Pd& pd, void* addr, std::size_t length, std::uint64_t iova, unsigned access,
                    verbatim::Mr** out) noexcept {
    auto* const mr = make_nothrow<verbatim::Mr>();
    if (mr == nullptr) return ENOMEM;
    const KeyMeaning meaning{0,      iova,           length, reinterpret_cast<std::uint64_t>(addr),
                             access, pd.plain.handle};
    std::uint32_t key;
    if (const int error = world().keys.publish(meaning, key)) {
      destroy_nothrow(mr);
      return error;
    }
    mr->plain.lkey = mr->plain.rkey = key;
    *out = mr;
    return 0;
  }
  static int dereg_mr(verbatim::Mr& mr) noexcept {
    // Whoever copies holds the lock.
    const LockGuard guard(world().lock);
    const int error = world().keys.retire(mr.plain.lkey, [] { return true; });
    if (error == 0) destroy_nothrow(&mr);
    return error;
  }

  static int create_cq(verbatim::Context&, const ibv_cq_init_attr_ex& attr, CompChannel*,
                       verbatim::Cq** out) noexcept {
    if (const int error = check_completions(kLimits, "create_cq", attr.cqe)) return error;
    if (const int error = check_wc_fields(attr, kLimits.provider)) return error;
    auto* const cq = make_nothrow<packet::Cq>();
    if (cq == nullptr) return ENOMEM;
    const std::uint32_t places = completion_places(attr.cqe);
    cq->ring = new Stored[places];
    cq->mask = places - 1;
    cq->plain.cqe = static_cast<int>(places);
    CopyingCursor<packet::Cq, take>::wire(*cq);
    *out = cq;
    return 0;
  }
  static int resize_cq(verbatim::Cq& plain, int cqe) noexcept {
    if (const int error = check_completions(kLimits, "resize_cq", cqe)) return error;
    const std::uint32_t places = completion_places(static_cast<std::uint32_t>(cqe));
    auto* ring = new Stored[places];
    const ScopeExit free_it([&] { delete[] ring; });
    const LockGuard guard(world().lock);
    if (completions::count(own(plain)) > places) return EINVAL;
    completions::move_to(own(plain), ring, places, [](std::uint32_t, std::uint32_t) {});
    plain.plain.cqe = static_cast<int>(places);
    return 0;
  }
  static int destroy_cq(verbatim::Cq& cq) noexcept {
    SoftCompChannel::retire(cq);
    events_of(cq).retire(cq);
    destroy_nothrow(&own(cq));
    return 0;
  }

  static int create_srq(verbatim::Context&, const ibv_srq_init_attr_ex& attr,
                        verbatim::Srq** out) noexcept {
    if (attr.srq_type != IBV_SRQT_BASIC) return EOPNOTSUPP;
    if (const int error =
            check_shared_queue_sizes(kLimits, "create_srq", attr.attr.max_wr, attr.attr.max_sge))
      return error;
    auto* const srq = make_nothrow<packet::Srq>();
    if (srq == nullptr) return ENOMEM;
    srq->store.make(attr.attr.max_wr, std::max(attr.attr.max_sge, 1u));
    srq->attributes = {srq->store.max, srq->store.max_sge, 0};
    *out = srq;
    return 0;
  }
  static int destroy_srq(verbatim::Srq& srq) noexcept {
    events_of(srq).retire(srq);
    destroy_nothrow(&own(srq));
    return 0;
  }

  static int create_qp(verbatim::Context&, ibv_qp_init_attr_ex& attr, verbatim::Qp** out) noexcept {
    if (attr.qp_type != IBV_QPT_RC && attr.qp_type != IBV_QPT_UD) return EOPNOTSUPP;
    if (const int error = refuse_lacking_extras(kLimits.provider, attr, 0, "none")) return error;
    if (const int error =
            refuse_lacking_operations(kLimits.provider, attr, operations(attr.qp_type)))
      return error;
    if (const int error = grant_queue_pair_sizes(kLimits, attr)) return error;
    auto* const qp = make_nothrow<packet::Qp>();
    if (qp == nullptr) return ENOMEM;
    qp->send_cq = &own(verbatim::Cq::from(attr.send_cq));
    qp->receive_cq = &own(verbatim::Cq::from(attr.recv_cq));
    qp->srq = attr.srq != nullptr ? &own(verbatim::Srq::from(attr.srq)) : nullptr;
    qp->pd = attr.pd->handle;
    qp->signal_all = attr.sq_sig_all != 0;
    qp->receives.make(attr.cap.max_recv_wr, attr.cap.max_recv_sge);
    qp->plain.qp_type = attr.qp_type;
    if (!make_calls(*qp, attr)) {
      destroy_nothrow(qp);
      return ENOMEM;
    }
    const LockGuard guard(world().lock);
    qp->plain.qp_num = world().next_qpn++;
    world().queue_pairs.emplace(qp->plain.qp_num, qp);
    *out = qp;
    return 0;
  }
  static int modify_qp(verbatim::Qp& plain, ibv_qp_attr& attr, int mask) noexcept {
    packet::Qp& qp = own(plain);
    const LockGuard guard(world().lock);
    ibv_qp_state from;
    ibv_qp_state to;
    if (const int error = check_transition(qp, attr, mask, from, to)) return error;
    apply_attributes(qp, attr, mask);
    if (to == IBV_QPS_ERR && from != to) end(qp);
    if (to == IBV_QPS_RTR && from != to) {
      qp.expected = attr.rq_psn & kPsnMask;
      qp.has_complained = qp.was_heard = false;
    }
    if (to == IBV_QPS_RESET) {
      qp.receives.taken = qp.receives.posted;
      qp.atomics.clear();
      qp.head = qp.sent = qp.tail = qp.freed = qp.tries = qp.not_ready = 0;
      qp.rests = false;
      qp.first_error.forget();
      qp.repeat_at = kForEver;
      forget_completions(qp);
    }
    if (to == IBV_QPS_SQD) {
      const bool tells = (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0 && attr.en_sqd_async_notify != 0;
      if (qp.drain.begin(tells, qp.awaits_answer())) events_of(qp).raise(qp, IBV_EVENT_SQ_DRAINED);
    }
    transmit(qp);
    pump();
    return 0;
  }
  static int query_qp(verbatim::Qp& qp, ibv_qp_attr& attr, int, ibv_qp_init_attr&) noexcept {
    const LockGuard guard(world().lock);
    read_attributes(qp, attr);
    attr.sq_draining = own(qp).state() == IBV_QPS_SQD && own(qp).drain.is_under_way();
    return 0;
  }
  static int destroy_qp(verbatim::Qp& plain) noexcept {
    packet::Qp& qp = own(plain);
    {
      const LockGuard guard(world().lock);
      world().queue_pairs.erase(qp.plain.qp_num);
      forget_completions(qp);
    }
    events_of(qp).retire(qp);
    destroy_nothrow(&qp);
    return 0;
  }

  static int post_send(ibv_qp* handle, ibv_send_wr* wr, ibv_send_wr** bad) noexcept {
    return post_list(own(verbatim::Qp::from(handle)), wr, bad);
  }
  static int post_recv(ibv_qp* handle, ibv_recv_wr* wr, ibv_recv_wr** bad) noexcept {
    packet::Qp& qp = own(verbatim::Qp::from(handle));
    const LockGuard guard(world().lock);
    *bad = wr;
    if (qp.srq != nullptr || qp.state() == IBV_QPS_RESET) return EINVAL;
    const int error = qp.receives.post(wr, bad);
    if (qp.state() == IBV_QPS_ERR) flush(qp);
    return error;
  }
  static int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad) noexcept {
    const LockGuard guard(world().lock);
    return own(verbatim::Srq::from(srq)).store.post(wr, bad);
  }
  static int poll_cq(ibv_cq* cq, int entries, ibv_wc* wc) noexcept {
    const LockGuard guard(world().lock);
    progress();
    int taken = 0;
    while (taken < entries && poll_one(own(verbatim::Cq::from(cq)), wc[taken])) ++taken;
    return taken;
  }
  static int req_notify_cq(ibv_cq* handle, int solicited_only) noexcept {
    packet::Cq& cq = own(verbatim::Cq::from(handle));
    const LockGuard guard(world().lock);
    if (handle->channel == nullptr) return 0;
    cq.armed = armed::again(cq.armed, solicited_only != 0);
    tell(cq);
    return 0;
  }
};

}  // namespace

constinit const ProviderTable kProvider = make_provider_table<PacketVerbs>();

}  // namespace verbatim::packet
