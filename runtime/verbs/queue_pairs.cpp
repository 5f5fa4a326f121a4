// SPDX-License-Identifier: BSD-2-Clause
// What a QP of each type must be made with is checked here (IBTA 11.2.4.1, man ibv_create_qp_ex),
// and what its comp_mask leaves out is cleared, so that providers need not read the mask. A QP pins
// all that it was made from; each multicast group that it joins pins the QP.
#include "runtime/verbs/queue_pairs.hpp"

#include <cerrno>
#include <cstring>

#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/sync/mutex.hpp"
#include "runtime/verbs/addresses.hpp"
#include "runtime/verbs/context_objects.hpp"
#include "runtime/verbs/dependency.hpp"
#include "runtime/verbs/provider.hpp"
#include "runtime/verbs/strict.hpp"
#include "runtime/verbs/strict_events.hpp"

namespace verbatim {

/// A group that a queue pair is in. Under the queue pair's public mutex.
struct Membership {
  ibv_gid gid;
  std::uint16_t lid;
  Membership* next;
};

namespace {

constexpr const char* kCreateQp = "ibv_create_qp";

bool is_known_type(ibv_qp_type type) noexcept {
  switch (type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_UD:
    case IBV_QPT_RAW_PACKET:
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
    case IBV_QPT_DRIVER:
      return true;
    default:
      return false;
  }
}

/// Members that the mask leaves out become nothing, so that providers need not look at the mask.
void blank_what_is_not_given(ibv_qp_init_attr_ex& attr) noexcept {
  const auto has = [&](std::uint32_t bit) { return (attr.comp_mask & bit) != 0; };
  if (!has(IBV_QP_INIT_ATTR_PD)) attr.pd = nullptr;
  if (!has(IBV_QP_INIT_ATTR_XRCD)) attr.xrcd = nullptr;
  if (!has(IBV_QP_INIT_ATTR_CREATE_FLAGS)) attr.create_flags = 0;
  if (!has(IBV_QP_INIT_ATTR_MAX_TSO_HEADER)) attr.max_tso_header = 0;
  if (!has(IBV_QP_INIT_ATTR_IND_TABLE)) attr.rwq_ind_tbl = nullptr;
  if (!has(IBV_QP_INIT_ATTR_RX_HASH)) attr.rx_hash_conf = {};
  if (!has(IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)) attr.send_ops_flags = 0;
  if ((attr.create_flags & IBV_QP_CREATE_SOURCE_QPN) == 0) attr.source_qpn = 0;
}

Status check_masks(const ibv_qp_init_attr_ex& attr) noexcept {
  constexpr std::uint32_t kKnownMask = (IBV_QP_INIT_ATTR_SEND_OPS_FLAGS << 1) - 1;
  constexpr std::uint32_t kKnownFlags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB |
                                        IBV_QP_CREATE_SCATTER_FCS | IBV_QP_CREATE_CVLAN_STRIPPING |
                                        IBV_QP_CREATE_SOURCE_QPN |
                                        IBV_QP_CREATE_PCI_WRITE_END_PADDING;
  constexpr std::uint64_t kKnownOps = (IBV_QP_EX_WITH_ATOMIC_WRITE << 1) - 1;
  if ((attr.comp_mask & ~kKnownMask) != 0) {
    return refuse(EINVAL, kCreateQp, "unknown bits in comp_mask");
  }
  if ((attr.create_flags & ~kKnownFlags) != 0) {
    return refuse(EOPNOTSUPP, kCreateQp, "unknown create_flags");
  }
  if ((attr.send_ops_flags & ~kKnownOps) != 0) {
    return refuse(EOPNOTSUPP, kCreateQp, "unknown send_ops_flags");
  }
  return {};
}

Status check_parts(const Context& context, const ibv_qp_init_attr_ex& attr) noexcept {
  if (!is_known_type(attr.qp_type)) return refuse(EINVAL, kCreateQp, "unknown qp_type");
  const bool receives_by_xrc = attr.qp_type == IBV_QPT_XRC_RECV;
  if (receives_by_xrc ? attr.xrcd == nullptr : attr.pd == nullptr) {
    return refuse(EINVAL, kCreateQp,
                  receives_by_xrc ? "needs an XRC domain" : "needs a protection domain");
  }
  const bool sends = !receives_by_xrc && attr.rwq_ind_tbl == nullptr;
  const bool receives = sends && attr.qp_type != IBV_QPT_XRC_SEND;
  if (sends && attr.send_cq == nullptr) return refuse(EINVAL, kCreateQp, "needs a send_cq");
  if (receives && attr.recv_cq == nullptr) return refuse(EINVAL, kCreateQp, "needs a recv_cq");
  const ibv_context* const home = &context.extended.context;
  const auto foreign = [home](const auto* part) {
    return part != nullptr && part->context != home;
  };
  if (foreign(attr.pd) || foreign(attr.xrcd) || foreign(attr.send_cq) || foreign(attr.recv_cq) ||
      foreign(attr.srq) || foreign(attr.rwq_ind_tbl)) {
    return refuse(EINVAL, kCreateQp, "its objects belong to different contexts");
  }
  return {};
}

template <class Handle, class Plain>
Handle* ours(Plain* plain) noexcept {
  return plain == nullptr ? nullptr : &Handle::from(plain);
}

void complete(Qp& qp, Context& context, const ibv_qp_init_attr_ex& attr) noexcept {
  // A provider that has said so already may be raising an event by it.
  if (qp.plain.context != context.handle()) qp.plain.context = context.handle();
  qp.plain.qp_context = attr.qp_context;
  qp.plain.pd = attr.pd;
  qp.plain.send_cq = attr.send_cq;
  qp.plain.recv_cq = attr.recv_cq;
  qp.plain.srq = attr.srq;
  qp.plain.qp_type = attr.qp_type;
  qp.sq_sig_all = attr.sq_sig_all != 0;
  qp.takes_work_calls = attr.send_ops_flags != 0;
  qp.init = {attr.qp_context, attr.send_cq, attr.recv_cq,   attr.srq,
             attr.cap,        attr.qp_type, attr.sq_sig_all};
  qp.xrcd = ours<Xrcd>(attr.xrcd);
  qp.ind_table = ours<RwqIndTable>(attr.rwq_ind_tbl);
}

void pin_parts(const Qp& qp) noexcept {
  pin(ours<Pd>(qp.plain.pd), ours<Cq>(qp.plain.send_cq), ours<Cq>(qp.plain.recv_cq),
      ours<Srq>(qp.plain.srq), qp.xrcd, qp.ind_table);
}

}  // namespace

Result<Qp*> create_qp(Context& context, ibv_qp_init_attr_ex& attr) noexcept {
  ibv_qp_init_attr_ex asked = attr;
  blank_what_is_not_given(asked);
  if (const Status status = check_masks(asked); !status.ok()) return status.error();
  if (const Status status = check_parts(context, asked); !status.ok()) return status.error();
  Qp* qp = nullptr;
  if (const int error = table_of(context).create_qp(context, asked, &qp)) {
    return Error{error, "create_qp"};
  }
  complete(*qp, context, asked);
  if (asked.send_ops_flags != 0 && qp->extended.wr_start == nullptr) {
    log_refusal("%s: ibv_wr_* (send_ops_flags) are not supported by this provider",
                table_of(context).name);
    const int error = table_of(context).destroy_qp(*qp);
    return Error{error == 0 ? EOPNOTSUPP : error, "create_qp_ex"};
  }
  pin_parts(*qp);
  check_new_qp(*qp);
  own(*qp);
  attr.cap = asked.cap;
  return qp;
}

Result<Qp*> open_qp(Context& context, const ibv_qp_open_attr& attr) noexcept {
  constexpr const char* kVerb = "ibv_open_qp";
  constexpr std::uint32_t kNeeded =
      IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_TYPE;
  if (attr.comp_mask >= IBV_QP_OPEN_ATTR_RESERVED || (attr.comp_mask & kNeeded) != kNeeded) {
    return refuse(EINVAL, kVerb, "comp_mask must name xrcd, qp_num and qp_type");
  }
  if (attr.xrcd == nullptr || attr.xrcd->context != context.handle()) {
    return refuse(EINVAL, kVerb, "the XRC domain is missing or of another context");
  }
  Qp* qp = nullptr;
  if (const int error = table_of(context).open_qp(context, attr, &qp)) {
    return Error{error, "open_qp"};
  }
  ibv_qp_init_attr_ex as_created{};
  as_created.qp_context =
      (attr.comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) == 0 ? nullptr : attr.qp_context;
  as_created.qp_type = attr.qp_type;
  as_created.xrcd = attr.xrcd;
  complete(*qp, context, as_created);
  pin_parts(*qp);
  own(*qp);
  return qp;
}

namespace {

/// What only the other half of an XRC connection has. Programs name it as for RC, and the kernel
/// takes it out of the mask for every device (modify_qp_mask of uverbs_cmd.c).
int attributes_of_other_half(ibv_qp_type type) noexcept {
  switch (type) {
    case IBV_QPT_XRC_SEND:
      return IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    case IBV_QPT_XRC_RECV:
      return IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
    default:
      return 0;
  }
}

}  // namespace

Status modify_qp(Qp& qp, ibv_qp_attr& attr, int mask) noexcept {
  // Bits 21 to 24 are the kernel's own and cannot be asked for here.
  constexpr int kKnown = ((IBV_QP_DEST_QPN << 1) - 1) | IBV_QP_RATE_LIMIT;
  if ((mask & ~kKnown) != 0) {
    log_refusal("ibv_modify_qp: QP 0x%06x: unknown bits 0x%x in the mask", qp.plain.qp_num,
                static_cast<unsigned>(mask & ~kKnown));
    return Error{EINVAL, "unknown attributes"};
  }
  mask &= ~attributes_of_other_half(qp.plain.qp_type);
  const int error = table_of(qp).modify_qp(qp, attr, mask);
  if (error == 0) check_modified_qp(qp, attr, mask);
  return Status::from_errno(error, "modify_qp");
}

Status query_qp(Qp& qp, ibv_qp_attr& out, int mask, ibv_qp_init_attr& init) noexcept {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr as_created = qp.init;
  if (const int error = table_of(qp).query_qp(qp, attributes, mask, as_created)) {
    return Error{error, "query_qp"};
  }
  out = attributes;
  init = as_created;
  return {};
}

Status destroy_qp(Qp& qp) noexcept {
  if (was_left(qp)) return {};
  if (const std::uint32_t uses = still_used(qp)) {
    return refuse_busy("ibv_destroy_qp", uses, "multicast groups or flows");
  }
  Pd* const pd = ours<Pd>(qp.plain.pd);
  Cq* const send_cq = ours<Cq>(qp.plain.send_cq);
  Cq* const recv_cq = ours<Cq>(qp.plain.recv_cq);
  Srq* const srq = ours<Srq>(qp.plain.srq);
  Xrcd* const xrcd = qp.xrcd;
  RwqIndTable* const ind_table = qp.ind_table;
  check_acks(qp);
  forget_qp(qp);
  disown(qp);
  if (const int error = table_of(qp).destroy_qp(qp)) {
    own_again(qp);
    check_new_qp(qp);  // it stays
    return Error{error, "destroy_qp"};
  }
  unpin(pd, send_cq, recv_cq, srq, xrcd, ind_table);
  return {};
}

Status modify_qp_rate_limit(Qp& qp, const ibv_qp_rate_limit_attr& attr) noexcept {
  return Status::from_errno(table_of(qp).modify_qp_rate_limit(qp, attr), "modify_qp_rate_limit");
}

int query_qp_data_in_order(Qp& qp, ibv_wr_opcode op, std::uint32_t flags) noexcept {
  return table_of(qp).query_qp_data_in_order(qp, op, flags);
}

Status set_ece(Qp& qp, ibv_ece& ece) noexcept {
  return Status::from_errno(table_of(qp).set_ece(qp, ece), "set_ece");
}

Status query_ece(Qp& qp, ibv_ece& out) noexcept {
  return Status::from_errno(table_of(qp).query_ece(qp, out), "query_ece");
}

namespace {

Status check_mcast(const char* verb, const Qp& qp, const ibv_gid& gid) noexcept {
  if (qp.plain.qp_type != IBV_QPT_UD && qp.plain.qp_type != IBV_QPT_RAW_PACKET) {
    return refuse(EINVAL, verb, "only UD and raw packet queue pairs join groups");
  }
  if (qp.plain.qp_type == IBV_QPT_UD && !is_group(gid)) {
    return refuse(EINVAL, verb, "not a multicast GID");
  }
  return {};
}

/// The one of this lid, if there is one: providers may know a group by its GID alone.
void forget_membership(Qp& qp, const ibv_gid& gid, std::uint16_t lid) noexcept {
  const PthreadGuard guard(qp.plain.mutex);
  Membership** found = nullptr;
  for (Membership** link = &qp.groups; *link != nullptr; link = &(*link)->next) {
    if (std::memcmp(&(*link)->gid, &gid, sizeof gid) != 0) continue;
    if (found == nullptr || (*link)->lid == lid) found = link;
  }
  if (found == nullptr) return;
  Membership* const ended = *found;
  *found = ended->next;
  destroy_nothrow(ended);
}

}  // namespace

Status attach_mcast(Qp& qp, const ibv_gid& gid, std::uint16_t lid) noexcept {
  if (const Status status = check_mcast("ibv_attach_mcast", qp, gid); !status.ok()) return status;
  auto* const membership = make_nothrow<Membership>(Membership{gid, lid, nullptr});
  if (membership == nullptr) return Error{ENOMEM, "no memory for a membership"};
  if (const int error = table_of(qp).attach_mcast(qp, gid, lid)) {
    destroy_nothrow(membership);
    if (error == EALREADY) return {};
    return Error{error, "attach_mcast"};
  }
  pin(&qp);
  const PthreadGuard guard(qp.plain.mutex);
  membership->next = qp.groups;
  qp.groups = membership;
  return {};
}

Status detach_mcast(Qp& qp, const ibv_gid& gid, std::uint16_t lid) noexcept {
  if (const Status status = check_mcast("ibv_detach_mcast", qp, gid); !status.ok()) return status;
  if (const int error = table_of(qp).detach_mcast(qp, gid, lid)) {
    return Error{error, "detach_mcast"};
  }
  forget_membership(qp, gid, lid);
  unpin(&qp);
  return {};
}

void leave_groups(Qp& qp) noexcept {
  while (Membership* const membership = qp.groups) {
    // One that the provider does not end goes with the queue pair, or keeps it.
    (void)table_of(qp).detach_mcast(qp, membership->gid, membership->lid);
    qp.groups = membership->next;
    destroy_nothrow(membership);
    unpin(&qp);
  }
}

}  // namespace verbatim
