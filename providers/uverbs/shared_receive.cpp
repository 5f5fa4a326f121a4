// SPDX-License-Identifier: BSD-2-Clause
#include "providers/uverbs/shared_receive.hpp"

#include "providers/uverbs/forget.hpp"
#include "runtime/verbs/event_acks.hpp"

namespace verbatim::uverbs {
namespace {

struct Made {
  std::uint32_t handle = 0;
  std::uint32_t max_wr = 0;
  std::uint32_t max_sge = 0;
};

int create_by_method(Context& context, const ibv_srq_init_attr_ex& attr, std::uint64_t number,
                     const kernel::DriverData& driver, Made& made) noexcept {
  kernel::IoctlCall call =
      context.command_channel.method(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE);
  call.new_handle(UVERBS_ATTR_CREATE_SRQ_HANDLE);
  call.handle(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, attr.pd->handle);
  call.in_value(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, number);
  call.in_value(UVERBS_ATTR_CREATE_SRQ_MAX_WR, attr.attr.max_wr);
  call.in_value(UVERBS_ATTR_CREATE_SRQ_MAX_SGE, attr.attr.max_sge);
  call.in_value(UVERBS_ATTR_CREATE_SRQ_LIMIT, attr.attr.srq_limit);
  call.constant(UVERBS_ATTR_CREATE_SRQ_TYPE, IBV_SRQT_BASIC);
  call.out_value(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, made.max_wr);
  call.out_value(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, made.max_sge);
  call.driver(driver);
  if (const int error = context.command_channel.call(call)) return error;
  return call.take_handle(UVERBS_ATTR_CREATE_SRQ_HANDLE, made.handle);
}

int create_by_command(Context& context, const ibv_srq_init_attr_ex& attr, std::uint64_t number,
                      const kernel::DriverData& driver, Made& made) noexcept {
  ib_uverbs_create_srq request{};
  request.user_handle = number;
  request.pd_handle = attr.pd->handle;
  request.max_wr = attr.attr.max_wr;
  request.max_sge = attr.attr.max_sge;
  request.srq_limit = attr.attr.srq_limit;
  ib_uverbs_create_srq_resp reply{};
  const int error =
      context.command_channel.command(IB_USER_VERBS_CMD_CREATE_SRQ, request, reply, driver);
  made = {reply.srq_handle, reply.max_wr, reply.max_sge};
  return error;
}

}  // namespace

int create_srq(Context& context, const ibv_srq_init_attr_ex& attr, Srq& srq,
               const kernel::DriverData& driver) noexcept {
  if (attr.srq_type != IBV_SRQT_BASIC) return EOPNOTSUPP;
  const std::uint64_t number = context.objects.add(Kind::kSrq, static_cast<Srq*>(&srq));
  if (number == 0) return ENOMEM;
  Made made;
  int error = create_by_method(context, attr, number, driver, made);
  if (CommandChannel::has_no_method(error)) {
    error = create_by_command(context, attr, number, driver, made);
  }
  if (error == 0) error = context.objects.claim(made.handle);
  if (error != 0) {
    context.objects.remove(number);
    return error;
  }
  srq.number = number;
  srq.plain.context = context.handle();
  srq.plain.handle = made.handle;
  srq.attributes = {made.max_wr, made.max_sge, attr.attr.srq_limit};
  return 0;
}

int modify_srq(Srq& srq, const ibv_srq_attr& attr, int mask,
               const kernel::DriverData& driver) noexcept {
  ib_uverbs_modify_srq request{};
  request.srq_handle = srq.plain.handle;
  request.attr_mask = static_cast<std::uint32_t>(mask);
  request.max_wr = attr.max_wr;
  request.srq_limit = attr.srq_limit;
  return context_of(srq).command_channel.command(
      {IB_USER_VERBS_CMD_MODIFY_SRQ, &request, sizeof request, nullptr, 0, driver});
}

int query_srq(verbatim::Srq& srq, ibv_srq_attr& attr) noexcept {
  ib_uverbs_query_srq request{};
  request.srq_handle = srq.plain.handle;
  ib_uverbs_query_srq_resp reply{};
  const int error =
      context_of(srq).command_channel.command(IB_USER_VERBS_CMD_QUERY_SRQ, request, reply);
  if (error != 0) return error;
  attr = {reply.max_wr, reply.max_sge, reply.srq_limit};
  return 0;
}

int destroy_srq(Srq& srq) noexcept {
  Context& context = context_of(srq);
  ib_uverbs_destroy_srq_resp reply{};
  const int error = forget_handle(
      context, srq.plain.handle,
      [&](CommandChannel& channel) noexcept {
        kernel::IoctlCall call = channel.method(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY);
        call.handle(UVERBS_ATTR_DESTROY_SRQ_HANDLE, srq.plain.handle);
        call.out_value(UVERBS_ATTR_DESTROY_SRQ_RESP, reply);
        return channel.call(call);
      },
      [&](CommandChannel& channel) noexcept {
        ib_uverbs_destroy_srq request{};
        request.srq_handle = srq.plain.handle;
        return channel.command(IB_USER_VERBS_CMD_DESTROY_SRQ, request, reply);
      });
  if (error != 0) return error;
  wait_for_async_acks(srq, context.objects.remove(srq.number).asynchronous);
  return 0;
}

int create_ah(Pd& pd, const ibv_ah_attr& attr, Ah& ah, const kernel::DriverData& driver) noexcept {
  Context& context = context_of(pd);
  ib_uverbs_create_ah request{};
  request.user_handle = reinterpret_cast<std::uintptr_t>(&ah);
  request.pd_handle = pd.plain.handle;
  __builtin_memcpy(request.attr.grh.dgid, attr.grh.dgid.raw, sizeof request.attr.grh.dgid);
  request.attr.grh.flow_label = attr.grh.flow_label;
  request.attr.grh.sgid_index = attr.grh.sgid_index;
  request.attr.grh.hop_limit = attr.grh.hop_limit;
  request.attr.grh.traffic_class = attr.grh.traffic_class;
  request.attr.dlid = attr.dlid;
  request.attr.sl = attr.sl;
  request.attr.src_path_bits = attr.src_path_bits;
  request.attr.static_rate = attr.static_rate;
  request.attr.is_global = attr.is_global;
  request.attr.port_num = attr.port_num;
  ib_uverbs_create_ah_resp reply{};
  int error = context.command_channel.command(IB_USER_VERBS_CMD_CREATE_AH, request, reply, driver);
  if (error == 0) error = context.objects.claim(reply.ah_handle);
  if (error != 0) return error;
  ah.plain.context = context.handle();
  ah.plain.handle = reply.ah_handle;
  return 0;
}

int destroy_ah(Ah& ah) noexcept {
  return forget_plain<ib_uverbs_destroy_ah>(context_of(ah), ah.plain.handle, UVERBS_OBJECT_AH,
                                            UVERBS_METHOD_AH_DESTROY, UVERBS_ATTR_DESTROY_AH_HANDLE,
                                            IB_USER_VERBS_CMD_DESTROY_AH);
}

}  // namespace verbatim::uverbs
