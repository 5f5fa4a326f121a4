// SPDX-License-Identifier: BSD-2-Clause
// Shared receive queues. Posting goes through ibv_context.ops, past this file.
#include "abi/entry/border.hpp"
#include "runtime/verbs/srqs.hpp"

namespace verbatim {
namespace {

/// The real sizes go back into what the application asked with.
ibv_srq* with_sizes(Result<Srq*> srq, ibv_srq_attr& attr) noexcept {
  if (srq.ok()) {
    attr.max_wr = srq.value()->attributes.max_wr;
    attr.max_sge = srq.value()->attributes.max_sge;
  }
  return as_pointer(srq);
}

ibv_srq* create_srq_ex_slot(ibv_context* context, ibv_srq_init_attr_ex* attr) {
  return with_sizes(create_srq(Context::from(context), *attr), attr->attr);
}

int get_srq_num_slot(ibv_srq* srq, std::uint32_t* number) {
  return as_errno(get_srq_num(Srq::from(srq), *number));
}

int post_srq_ops_slot(ibv_srq* srq, ibv_ops_wr* first, ibv_ops_wr** bad) {
  const Status status = post_srq_ops(Srq::from(srq), first, bad);
  if (!status.ok() && status.error().code == EOPNOTSUPP) *bad = first;
  return as_errno(status);
}

}  // namespace

void fill_srq_slots(verbs_context& slots) noexcept {
  slots.create_srq_ex = create_srq_ex_slot;
  slots.get_srq_num = get_srq_num_slot;
  slots.post_srq_ops = post_srq_ops_slot;
}

}  // namespace verbatim

using namespace verbatim;

VBT_ENTRY ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* init) {
  ibv_srq_init_attr_ex attr{};
  attr.srq_context = init->srq_context;
  attr.attr = init->attr;
  attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  attr.srq_type = IBV_SRQT_BASIC;
  attr.pd = pd;
  return with_sizes(create_srq(Context::from(pd->context), attr), init->attr);
}

VBT_ENTRY int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
  return as_errno(modify_srq(Srq::from(srq), *attr, mask));
}

VBT_ENTRY int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attr) {
  return as_errno(query_srq(Srq::from(srq), *attr));
}

VBT_ENTRY int ibv_destroy_srq(ibv_srq* srq) { return as_errno(destroy_srq(Srq::from(srq))); }
