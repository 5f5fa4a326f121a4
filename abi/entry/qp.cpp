// SPDX-License-Identifier: BSD-2-Clause
// Queue pairs and multicast groups. Posting goes through ibv_context.ops or ibv_qp_ex, past this
// file.
#include "abi/entry/border.hpp"
#include "runtime/verbs/queue_pairs.hpp"

namespace verbatim {
namespace {

ibv_qp* create_qp_ex_slot(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  return as_pointer(create_qp(Context::from(context), *attr));
}

ibv_qp* open_qp_slot(ibv_context* context, ibv_qp_open_attr* attr) {
  return as_pointer(open_qp(Context::from(context), *attr));
}

int modify_qp_rate_limit_slot(ibv_qp* qp, ibv_qp_rate_limit_attr* attr) {
  return as_errno(modify_qp_rate_limit(Qp::from(qp), *attr));
}

}  // namespace

void fill_qp_slots(verbs_context& slots) noexcept {
  slots.create_qp_ex = create_qp_ex_slot;
  slots.open_qp = open_qp_slot;
  slots.modify_qp_rate_limit = modify_qp_rate_limit_slot;
}

}  // namespace verbatim

using namespace verbatim;

VBT_ENTRY ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* init) {
  ibv_qp_init_attr_ex attr{};
  attr.qp_context = init->qp_context;
  attr.send_cq = init->send_cq;
  attr.recv_cq = init->recv_cq;
  attr.srq = init->srq;
  attr.cap = init->cap;
  attr.qp_type = init->qp_type;
  attr.sq_sig_all = init->sq_sig_all;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.pd = pd;
  const Result<Qp*> qp = create_qp(Context::from(pd->context), attr);
  if (qp.ok()) init->cap = attr.cap;
  return as_pointer(qp);
}

VBT_ENTRY int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  return as_errno(modify_qp(Qp::from(qp), *attr, mask));
}

VBT_ENTRY int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) {
  return as_errno(query_qp(Qp::from(qp), *attr, mask, *init));
}

VBT_ENTRY int ibv_destroy_qp(ibv_qp* qp) { return as_errno(destroy_qp(Qp::from(qp))); }

VBT_ENTRY ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  Qp& ours = Qp::from(qp);
  return ours.takes_work_calls ? &ours.extended : nullptr;
}

VBT_ENTRY int ibv_query_qp_data_in_order(ibv_qp* qp, ibv_wr_opcode op, std::uint32_t flags) {
  return query_qp_data_in_order(Qp::from(qp), op, flags);
}

VBT_ENTRY int ibv_set_ece(ibv_qp* qp, ibv_ece* ece) {
  return as_errno(set_ece(Qp::from(qp), *ece));
}

VBT_ENTRY int ibv_query_ece(ibv_qp* qp, ibv_ece* ece) {
  return as_errno(query_ece(Qp::from(qp), *ece));
}

VBT_ENTRY int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  return as_errno(attach_mcast(Qp::from(qp), *gid, lid));
}

VBT_ENTRY int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t lid) {
  return as_errno(detach_mcast(Qp::from(qp), *gid, lid));
}
