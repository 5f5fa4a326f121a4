// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/null_provider.hpp"

#include <algorithm>

#include "runtime/base/make_nothrow.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "runtime/verbs/dependency.hpp"
#include "runtime/verbs/software/qp_states.hpp"
#include "runtime/verbs/software/soft_comp_channel.hpp"
#include "runtime/verbs/software/soft_context.hpp"
#include "runtime/verbs/software/soft_device.hpp"
#include "runtime/verbs/software/soft_domains.hpp"

namespace verbatim::null {
namespace {

struct NullContext : Context {
  using Context::Context;
  SoftEvents events;
  std::atomic<std::uint32_t> next_key{1};
};

struct Null : SoftAddressVerbs<Ah>,
              SoftCompChannelVerbs,
              SoftContextVerbs<NullContext>,
              SoftPortVerbs {
  static constexpr const char* kName = "null";

  using Context = NullContext;
  struct Mr : verbatim::Mr {};
  struct Qp : verbatim::Qp {};
  struct Cq : verbatim::Cq {
    SpinLock lock;
    ibv_wc ring[kMaxCqe];
    std::uint32_t head = 0;
    std::uint32_t tail = 0;
  };

  static Context& own(verbatim::Context& context) { return static_cast<Context&>(context); }
  template <class Handle>
  static SoftEvents& events_of(Handle& object) {
    return own(context_of(object)).events;
  }

  // Devices.
  static int list_devices(DeviceSink& sink) noexcept {
    return sink.add({.name = "null0", .node_type = IBV_NODE_UNSPECIFIED});
  }
  static int query_device(verbatim::Context&, ibv_device_attr_ex& attr) noexcept {
    attr.orig_attr.phys_port_cnt = 1;
    attr.orig_attr.max_cqe = kMaxCqe;
    attr.orig_attr.max_qp_rd_atom = attr.orig_attr.max_qp_init_rd_atom = 4;
    return 0;
  }
  static int query_port(verbatim::Context&, std::uint8_t, ibv_port_attr& attr) noexcept {
    attr.state = IBV_PORT_ACTIVE;
    attr.max_mtu = attr.active_mtu = IBV_MTU_2048;
    attr.gid_tbl_len = 1;
    attr.pkey_tbl_len = 1;
    attr.lid = 1;
    attr.link_layer = IBV_LINK_LAYER_INFINIBAND;
    return 0;
  }
  static int query_gid(verbatim::Context&, std::uint8_t, int index, ibv_gid_entry& entry) noexcept {
    if (index != 0) return EINVAL;
    entry.gid.raw[0] = 0xfe;
    entry.gid.raw[1] = 0x80;
    entry.gid.raw[15] = 1;
    return 0;
  }

  // Handles.
  static int alloc_pd(verbatim::Context&, Pd** out) noexcept {
    *out = make_nothrow<Pd>();
    return *out == nullptr ? ENOMEM : 0;
  }
  static int dealloc_pd(Pd& pd) noexcept {
    destroy_nothrow(&pd);
    return 0;
  }
  static int reg_mr(Pd& pd, void*, std::size_t, std::uint64_t, unsigned,
                    verbatim::Mr** out) noexcept {
    auto* const mr = make_nothrow<Mr>();
    if (mr == nullptr) return ENOMEM;
    mr->plain.lkey = mr->plain.rkey = own(context_of(pd)).next_key.fetch_add(1);
    *out = mr;
    return 0;
  }
  static int rereg_mr(verbatim::Mr&, int, Pd*, void*, std::size_t, unsigned) noexcept { return 0; }
  static int dereg_mr(verbatim::Mr& mr) noexcept {
    destroy_nothrow(static_cast<Mr*>(&mr));
    return 0;
  }
  static int create_srq(verbatim::Context&, const ibv_srq_init_attr_ex& attr, Srq** out) noexcept {
    auto* const srq = make_nothrow<Srq>();
    if (srq == nullptr) return ENOMEM;
    srq->attributes = attr.attr;
    *out = srq;
    return 0;
  }
  static int query_srq(Srq&, ibv_srq_attr&) noexcept { return 0; }
  static int destroy_srq(Srq& srq) noexcept {
    events_of(srq).retire(srq);
    destroy_nothrow(&srq);
    return 0;
  }

  static int create_cq(verbatim::Context&, const ibv_cq_init_attr_ex& attr, CompChannel*,
                       verbatim::Cq** out) noexcept {
    if (attr.cqe > kMaxCqe) return EINVAL;
    auto* const cq = make_nothrow<Cq>();
    if (cq == nullptr) return ENOMEM;
    cq->plain.cqe = kMaxCqe;
    *out = cq;
    return 0;
  }
  static int destroy_cq(verbatim::Cq& cq) noexcept {
    SoftCompChannel::retire(cq);
    events_of(cq).retire(cq);
    destroy_nothrow(static_cast<Cq*>(&cq));
    return 0;
  }

  static int create_qp(verbatim::Context& context, ibv_qp_init_attr_ex& attr,
                       verbatim::Qp** out) noexcept {
    auto* const qp = make_nothrow<Qp>();
    if (qp == nullptr) return ENOMEM;
    qp->plain.qp_num = own(context).next_key.fetch_add(1);
    attr.cap.max_inline_data = 7;  // something that nobody asks for
    *out = qp;
    return 0;
  }
  static int modify_qp(verbatim::Qp& qp, ibv_qp_attr& attr, int mask) noexcept {
    ibv_qp_state from;
    ibv_qp_state to;
    if (const int error = check_transition(qp, attr, mask, from, to)) return error;
    apply_attributes(qp, attr, mask);
    return 0;
  }
  static int query_qp(verbatim::Qp& qp, ibv_qp_attr& attr, int, ibv_qp_init_attr&) noexcept {
    read_attributes(qp, attr);
    return 0;
  }
  static int destroy_qp(verbatim::Qp& qp) noexcept {
    events_of(qp).retire(qp);
    destroy_nothrow(static_cast<Qp*>(&qp));
    return 0;
  }
  static int attach_mcast(verbatim::Qp&, const ibv_gid&, std::uint16_t) noexcept { return 0; }
  static int detach_mcast(verbatim::Qp&, const ibv_gid&, std::uint16_t) noexcept { return 0; }

  // The data path.
  static int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) noexcept {
    auto& cq = static_cast<Cq&>(verbatim::Cq::from(qp->send_cq));
    for (; wr != nullptr; wr = wr->next) {
      const LockGuard guard(cq.lock);
      if (cq.tail - cq.head == kMaxCqe) {
        *bad = wr;
        return ENOMEM;
      }
      ibv_wc& wc = cq.ring[cq.tail++ % kMaxCqe];
      wc = {};
      wc.wr_id = wr->wr_id;
      wc.qp_num = qp->qp_num;
    }
    return 0;
  }
  static int poll_cq(ibv_cq* handle, int entries, ibv_wc* wc) noexcept {
    auto& cq = static_cast<Cq&>(verbatim::Cq::from(handle));
    const LockGuard guard(cq.lock);
    int taken = 0;
    for (; taken < entries && cq.head != cq.tail; ++taken) wc[taken] = cq.ring[cq.head++ % kMaxCqe];
    return taken;
  }
  static int req_notify_cq(ibv_cq*, int) noexcept { return 0; }
};

}  // namespace

constinit const ProviderTable kProvider = make_provider_table<Null>();

void raise(ibv_context* context, const ibv_async_event& event) noexcept {
  Null::own(Context::from(context)).events.raise(event);
}

void notify(ibv_cq* cq) noexcept {
  static_cast<SoftCompChannel&>(CompChannel::from(cq->channel)).notify(Cq::from(cq));
}

}  // namespace verbatim::null
