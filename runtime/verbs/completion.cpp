// SPDX-License-Identifier: BSD-2-Clause
// What a CQ is made with is checked here, before a provider sees it. A CQ pins its context and,
// where it has one, its parent domain; its channel counts it in the public `refcnt`, under the
// context's public mutex.
#include "runtime/verbs/completion.hpp"

#include <cerrno>
#include <climits>

#include "runtime/base/log.hpp"
#include "runtime/sync/mutex.hpp"
#include "runtime/verbs/context_objects.hpp"
#include "runtime/verbs/dependency.hpp"
#include "runtime/verbs/empty_polls.hpp"
#include "runtime/verbs/provider.hpp"
#include "runtime/verbs/strict.hpp"
#include "runtime/verbs/strict_events.hpp"

namespace verbatim {
namespace {

void count_cq(CompChannel* channel, int change) noexcept {
  if (channel == nullptr) return;
  const PthreadGuard guard(channel->plain.context->mutex);
  channel->plain.refcnt += change;
}

Status check(const Context& context, const ibv_cq_init_attr_ex& attr, bool extended) noexcept {
  const char* const verb = extended ? "ibv_create_cq_ex" : "ibv_create_cq";
  if (attr.cqe == 0 || attr.cqe > INT_MAX) return refuse(EINVAL, verb, "cqe must be positive");
  const auto vectors = static_cast<std::uint32_t>(context.extended.context.num_comp_vectors);
  if (attr.comp_vector >= vectors) {
    log_refusal("%s: comp_vector %u; the device has %u", verb, attr.comp_vector, vectors);
    return Error{EINVAL, "no such completion vector"};
  }
  if (attr.channel != nullptr && attr.channel->context != &context.extended.context) {
    return refuse(EINVAL, verb, "the channel belongs to another context");
  }
  if ((attr.comp_mask & ~std::uint32_t{IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD}) !=
      0) {
    return refuse(EINVAL, verb, "unknown bits in comp_mask");
  }
  if ((attr.wc_flags & ~std::uint64_t{IBV_CREATE_CQ_SUP_WC_FLAGS}) != 0) {
    return refuse(EOPNOTSUPP, verb, "unknown wc_flags");
  }
  constexpr std::uint32_t kKnownFlags =
      IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  if ((attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 && (attr.flags & ~kKnownFlags) != 0) {
    return refuse(EOPNOTSUPP, verb, "unknown flags");
  }
  if ((attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0 &&
      (attr.parent_domain == nullptr || attr.parent_domain->context != &context.extended.context)) {
    return refuse(EINVAL, verb, "the parent domain is missing or of another context");
  }
  if ((attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0 &&
      Pd::from(attr.parent_domain).original == nullptr) {
    return refuse(EINVAL, verb, "parent_domain was not made by ibv_alloc_parent_domain");
  }
  return {};
}

}  // namespace

Result<CompChannel*> create_comp_channel(Context& context) noexcept {
  CompChannel* channel = nullptr;
  if (const int error = table_of(context).create_comp_channel(context, &channel)) {
    return Error{error, "create_comp_channel"};
  }
  pin(&context);
  channel->plain.context = context.handle();
  channel->plain.refcnt = 0;
  own(*channel);
  return channel;
}

Status destroy_comp_channel(CompChannel& channel) noexcept {
  if (was_left(channel)) return {};
  Context& context = context_of(channel);
  int cqs = 0;
  {
    const PthreadGuard guard(context.handle()->mutex);
    cqs = channel.plain.refcnt;
  }
  if (cqs != 0) {
    return refuse_busy("ibv_destroy_comp_channel", static_cast<std::uint32_t>(cqs),
                       "completion queues");
  }
  disown(channel);
  if (const int error = table_of(context).destroy_comp_channel(channel)) {
    own_again(channel);
    return Error{error, "destroy_comp_channel"};
  }
  unpin(&context);
  return {};
}

Result<Cq*> get_cq_event(CompChannel& channel) noexcept {
  Cq* cq = nullptr;
  if (const int error = table_of(channel).get_cq_event(channel, &cq)) {
    return Error{error, "get_cq_event"};
  }
  note_event(*cq);
  return cq;
}

Result<Cq*> create_cq(Context& context, const ibv_cq_init_attr_ex& attr, bool extended) noexcept {
  if (const Status status = check(context, attr, extended); !status.ok()) return status.error();
  ibv_cq_init_attr_ex asked = attr;
  if ((asked.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) == 0) asked.flags = 0;
  CompChannel* const channel =
      asked.channel == nullptr ? nullptr : &CompChannel::from(asked.channel);
  Pd* const parent =
      (asked.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) == 0 ? nullptr : &Pd::from(asked.parent_domain);
  Cq* cq = nullptr;
  choose_how_empty_polls_wait();
  if (const int error = table_of(context).create_cq(context, asked, channel, &cq)) {
    return Error{error, "create_cq"};
  }
  cq->plain.context = context.handle();
  cq->plain.channel = asked.channel;
  cq->plain.cq_context = asked.cq_context;
  if (extended && cq->extended.start_poll == nullptr) {
    log_refusal("%s: extended polling (ibv_create_cq_ex) is not supported by this provider",
                table_of(context).name);
    const int error = table_of(context).destroy_cq(*cq);
    return Error{error == 0 ? EOPNOTSUPP : error, "create_cq_ex"};
  }
  cq->parent_domain = parent;
  pin(&context, parent);
  count_cq(channel, 1);
  own(*cq);
  return cq;
}

Status resize_cq(Cq& cq, int cqe) noexcept {
  if (cqe <= 0) return refuse(EINVAL, "ibv_resize_cq", "cqe must be positive");
  const int error = table_of(cq).resize_cq(cq, cqe);
  if (error == 0) check_resized_cq(cq);
  return Status::from_errno(error, "resize_cq");
}

Status modify_cq(Cq& cq, const ibv_modify_cq_attr& attr) noexcept {
  if (attr.attr_mask >= IBV_CQ_ATTR_RESERVED) {
    return refuse(EINVAL, "ibv_modify_cq", "unknown bits in attr_mask");
  }
  return Status::from_errno(table_of(cq).modify_cq(cq, attr), "modify_cq");
}

Status destroy_cq(Cq& cq) noexcept {
  if (was_left(cq)) return {};
  if (const std::uint32_t uses = still_used(cq)) {
    return refuse_busy("ibv_destroy_cq", uses, "queues (each queue pair counts per side)");
  }
  Context& context = context_of(cq);
  Pd* const parent = cq.parent_domain;
  CompChannel* const channel =
      cq.plain.channel == nullptr ? nullptr : &CompChannel::from(cq.plain.channel);
  check_acks(cq);
  disown(cq);
  if (const int error = table_of(context).destroy_cq(cq)) {
    own_again(cq);
    return Error{error, "destroy_cq"};
  }
  count_cq(channel, -1);
  unpin(&context, parent);
  return {};
}

}  // namespace verbatim
