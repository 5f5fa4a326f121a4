// SPDX-License-Identifier: BSD-2-Clause
// What each type of shared receive queue must be made with is checked here, before a provider sees
// it. A queue pins its PD, and its XRC domain and CQ where it has them.
#include "runtime/verbs/srqs.hpp"

#include <cerrno>

#include "runtime/verbs/context_objects.hpp"
#include "runtime/verbs/dependency.hpp"
#include "runtime/verbs/provider.hpp"
#include "runtime/verbs/strict.hpp"
#include "runtime/verbs/strict_events.hpp"

namespace verbatim {
namespace {

constexpr const char* kCreateSrq = "ibv_create_srq";

/// `attr` with the members that its mask leaves out set to nothing.
Result<ibv_srq_type> check(const Context& context, ibv_srq_init_attr_ex& attr) noexcept {
  const auto has = [&](std::uint32_t bit) { return (attr.comp_mask & bit) != 0; };
  if (attr.comp_mask >= IBV_SRQ_INIT_ATTR_RESERVED) {
    return refuse(EINVAL, kCreateSrq, "unknown bits in comp_mask");
  }
  if (!has(IBV_SRQ_INIT_ATTR_TYPE)) attr.srq_type = IBV_SRQT_BASIC;
  if (!has(IBV_SRQ_INIT_ATTR_XRCD)) attr.xrcd = nullptr;
  if (!has(IBV_SRQ_INIT_ATTR_CQ)) attr.cq = nullptr;
  if (!has(IBV_SRQ_INIT_ATTR_PD) || attr.pd == nullptr) {
    return refuse(EINVAL, kCreateSrq, "needs a protection domain");
  }
  switch (attr.srq_type) {
    case IBV_SRQT_BASIC:
      break;
    case IBV_SRQT_XRC:
      if (attr.xrcd == nullptr || attr.cq == nullptr) {
        return refuse(EINVAL, kCreateSrq, "an XRC queue needs an XRC domain and a CQ");
      }
      break;
    case IBV_SRQT_TM:
      if (attr.cq == nullptr || !has(IBV_SRQ_INIT_ATTR_TM)) {
        return refuse(EINVAL, kCreateSrq, "a tag-matching queue needs a CQ and tm_cap");
      }
      break;
    default:
      return refuse(EINVAL, kCreateSrq, "unknown srq_type");
  }
  const ibv_context* const home = &context.extended.context;
  if (attr.pd->context != home || (attr.xrcd != nullptr && attr.xrcd->context != home) ||
      (attr.cq != nullptr && attr.cq->context != home)) {
    return refuse(EINVAL, kCreateSrq, "its objects belong to different contexts");
  }
  if (attr.attr.max_wr == 0) return refuse(EINVAL, kCreateSrq, "max_wr must be positive");
  return attr.srq_type;
}

}  // namespace

Result<Srq*> create_srq(Context& context, const ibv_srq_init_attr_ex& attr) noexcept {
  ibv_srq_init_attr_ex asked = attr;
  const Result<ibv_srq_type> type = check(context, asked);
  if (!type.ok()) return type.error();
  Srq* srq = nullptr;
  if (const int error = table_of(context).create_srq(context, asked, &srq)) {
    return Error{error, "create_srq"};
  }
  srq->plain.context = context.handle();
  srq->plain.srq_context = asked.srq_context;
  srq->plain.pd = asked.pd;
  srq->type = type.value();
  srq->xrcd = asked.xrcd == nullptr ? nullptr : &Xrcd::from(asked.xrcd);
  srq->cq = asked.cq == nullptr ? nullptr : &Cq::from(asked.cq);
  pin(&Pd::from(asked.pd), srq->xrcd, srq->cq);
  check_new_srq(*srq);
  own(*srq);
  return srq;
}

Status modify_srq(Srq& srq, ibv_srq_attr& attr, int mask) noexcept {
  constexpr int kKnown = IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT;
  if ((mask & ~kKnown) != 0) return refuse(EINVAL, "ibv_modify_srq", "unknown bits in the mask");
  if ((mask & IBV_SRQ_MAX_WR) != 0 && attr.max_wr == 0) {
    return refuse(EINVAL, "ibv_modify_srq", "max_wr must be positive");
  }
  const int error = table_of(srq).modify_srq(srq, attr, mask);
  if (error == 0 && (mask & IBV_SRQ_MAX_WR) != 0) check_resized_srq(srq, attr.max_wr);
  return Status::from_errno(error, "modify_srq");
}

Status query_srq(Srq& srq, ibv_srq_attr& out) noexcept {
  ibv_srq_attr attributes = srq.attributes;
  if (const int error = table_of(srq).query_srq(srq, attributes)) return Error{error, "query_srq"};
  out = attributes;
  return {};
}

Status destroy_srq(Srq& srq) noexcept {
  if (was_left(srq)) return {};
  if (const std::uint32_t uses = still_used(srq)) {
    return refuse_busy("ibv_destroy_srq", uses, "queue pairs");
  }
  Pd& pd = Pd::from(srq.plain.pd);
  Xrcd* const xrcd = srq.xrcd;
  Cq* const cq = srq.cq;
  check_acks(srq);
  forget_srq(srq);
  disown(srq);
  if (const int error = table_of(srq).destroy_srq(srq)) {
    own_again(srq);
    check_new_srq(srq);  // it stays
    return Error{error, "destroy_srq"};
  }
  unpin(&pd, xrcd, cq);
  return {};
}

Status get_srq_num(Srq& srq, std::uint32_t& out) noexcept {
  return Status::from_errno(table_of(srq).get_srq_num(srq, out), "get_srq_num");
}

Status post_srq_ops(Srq& srq, ibv_ops_wr* first, ibv_ops_wr** bad) noexcept {
  return Status::from_errno(table_of(srq).post_srq_ops(srq, first, bad), "post_srq_ops");
}

}  // namespace verbatim
