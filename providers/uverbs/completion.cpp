// SPDX-License-Identifier: BSD-2-Clause
#include "providers/uverbs/completion.hpp"

#include <unistd.h>

#include "providers/uverbs/forget.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/verbs/event_acks.hpp"

namespace verbatim::uverbs {
namespace {

/// A length that the kernel says a queue has.
bool is_sound(std::uint32_t cqe) noexcept { return cqe != 0 && cqe <= INT32_MAX; }

struct Made {
  std::uint32_t handle = 0;
  std::uint32_t cqe = 0;
};

int create_by_method(Context& context, const ibv_cq_init_attr_ex& attr, const CompChannel* channel,
                     std::uint64_t number, const kernel::DriverData& driver, Made& made) noexcept {
  kernel::IoctlCall call =
      context.command_channel.method(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
  call.new_handle(UVERBS_ATTR_CREATE_CQ_HANDLE);
  call.in_value(UVERBS_ATTR_CREATE_CQ_CQE, attr.cqe);
  call.in_value(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, number);
  call.in_value(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, attr.comp_vector);
  if (channel != nullptr) call.fd(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, channel->plain.fd);
  std::uint32_t flags = 0;
  if ((attr.wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) != 0) {
    flags |= IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION;
  }
  if ((attr.flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0) {
    flags |= IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN;
  }
  if (flags != 0) call.in_value(UVERBS_ATTR_CREATE_CQ_FLAGS, flags);
  call.out_value(UVERBS_ATTR_CREATE_CQ_RESP_CQE, made.cqe);
  call.driver(driver);
  if (const int error = context.command_channel.call(call)) return error;
  return call.take_handle(UVERBS_ATTR_CREATE_CQ_HANDLE, made.handle);
}

int create_by_command(Context& context, const ibv_cq_init_attr_ex& attr, const CompChannel* channel,
                      std::uint64_t number, const kernel::DriverData& driver, Made& made) noexcept {
  // The plain command has no flags.
  if ((attr.wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) != 0 ||
      (attr.flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0) {
    return EOPNOTSUPP;
  }
  ib_uverbs_create_cq request{};
  request.user_handle = number;
  request.cqe = attr.cqe;
  request.comp_vector = attr.comp_vector;
  request.comp_channel = channel == nullptr ? -1 : channel->plain.fd;
  ib_uverbs_create_cq_resp reply{};
  const int error =
      context.command_channel.command(IB_USER_VERBS_CMD_CREATE_CQ, request, reply, driver);
  made = {reply.cq_handle, reply.cqe};
  return error;
}

}  // namespace

int create_comp_channel(verbatim::Context& plain, CompChannel** out) noexcept {
  auto& context = static_cast<Context&>(plain);
  CompChannel* const channel = make_nothrow<CompChannel>();
  if (channel == nullptr) return ENOMEM;
  ib_uverbs_create_comp_channel request{};
  ib_uverbs_create_comp_channel_resp reply{};
  int error =
      context.command_channel.command(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, request, reply);
  if (error == 0 && reply.fd > INT32_MAX) error = EPROTO;
  if (error != 0) {
    destroy_nothrow(channel);
    return error;
  }
  channel->plain.fd = static_cast<int>(reply.fd);
  *out = channel;
  return 0;
}

int destroy_comp_channel(CompChannel& channel) noexcept {
  ::close(channel.plain.fd);
  destroy_nothrow(&channel);
  return 0;
}

int get_cq_event(CompChannel& channel, verbatim::Cq** out) noexcept {
  Context& context = context_of(channel);
  for (;;) {
    ib_uverbs_comp_event_desc record;
    const ssize_t got = ::read(channel.plain.fd, &record, sizeof record);
    if (const int error = event_error(context, got, sizeof record)) return error;
    auto* const cq = static_cast<Cq*>(
        context.objects.deliver(Kind::kCq, record.cq_handle, &Delivered::completion));
    if (cq != nullptr) {
      *out = cq;
      return 0;
    }
    log_warn("%s: a completion event of no queue that is known here was left out",
             context.device.plain.name);
  }
}

int create_cq(Context& context, const ibv_cq_init_attr_ex& attr, CompChannel* channel, Cq& cq,
              const kernel::DriverData& driver) noexcept {
  const std::uint64_t number = context.objects.add(Kind::kCq, static_cast<Cq*>(&cq));
  if (number == 0) return ENOMEM;
  Made made;
  int error = create_by_method(context, attr, channel, number, driver, made);
  if (CommandChannel::has_no_method(error)) {
    error = create_by_command(context, attr, channel, number, driver, made);
  }
  if (error == 0 && !is_sound(made.cqe)) error = EPROTO;
  if (error == 0) error = context.objects.claim(made.handle);
  if (error != 0) {
    context.objects.remove(number);
    return error;
  }
  cq.number = number;
  cq.plain.context = context.handle();
  cq.plain.handle = made.handle;
  cq.plain.cqe = static_cast<int>(made.cqe);
  return 0;
}

int resize_cq(Cq& cq, int cqe, const kernel::DriverData& driver) noexcept {
  ib_uverbs_resize_cq request{};
  request.cq_handle = cq.plain.handle;
  request.cqe = static_cast<std::uint32_t>(cqe);
  ib_uverbs_resize_cq_resp reply{};
  const int error =
      context_of(cq).command_channel.command(IB_USER_VERBS_CMD_RESIZE_CQ, request, reply, driver);
  if (error != 0) return error;
  if (!is_sound(reply.cqe)) return EPROTO;
  cq.plain.cqe = static_cast<int>(reply.cqe);
  return 0;
}

int destroy_cq(Cq& cq) noexcept {
  Context& context = context_of(cq);
  ib_uverbs_destroy_cq_resp reply{};
  const int error = forget_handle(
      context, cq.plain.handle,
      [&](CommandChannel& channel) noexcept {
        kernel::IoctlCall call = channel.method(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY);
        call.handle(UVERBS_ATTR_DESTROY_CQ_HANDLE, cq.plain.handle);
        call.out_value(UVERBS_ATTR_DESTROY_CQ_RESP, reply);
        return channel.call(call);
      },
      [&](CommandChannel& channel) noexcept {
        ib_uverbs_destroy_cq request{};
        request.cq_handle = cq.plain.handle;
        return channel.command(IB_USER_VERBS_CMD_DESTROY_CQ, request, reply);
      });
  if (error != 0) return error;
  // The kernel's own count is not waited for: nobody would acknowledge what was never delivered.
  const Delivered delivered = context.objects.remove(cq.number);
  wait_for_completion_acks(cq, delivered.completion);
  wait_for_async_acks(cq, delivered.asynchronous);
  return 0;
}

int req_notify_cq(Cq& cq, bool solicited_only) noexcept {
  ib_uverbs_req_notify_cq request{};
  request.cq_handle = cq.plain.handle;
  request.solicited_only = solicited_only ? 1 : 0;
  return context_of(cq).command_channel.command(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, request);
}

}  // namespace verbatim::uverbs
