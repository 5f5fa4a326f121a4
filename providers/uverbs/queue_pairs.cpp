// SPDX-License-Identifier: BSD-2-Clause
#include "providers/uverbs/queue_pairs.hpp"

#include <cstring>

#include "providers/uverbs/forget.hpp"
#include "providers/uverbs/removal.hpp"
#include "runtime/base/log.hpp"
#include "runtime/verbs/event_acks.hpp"
#include "runtime/verbs/qp_values.hpp"
#include "runtime/verbs/rights.hpp"

namespace verbatim::uverbs {
namespace {

struct Made {
  std::uint32_t handle = 0;
  std::uint32_t qpn = 0;
  ib_uverbs_qp_cap cap = {};
};

std::uint32_t handle_of(const ibv_cq* cq) noexcept { return cq == nullptr ? 0 : cq->handle; }

int create_by_method(Context& context, const ibv_qp_init_attr_ex& attr, std::uint64_t number,
                     const kernel::DriverData& driver, Made& made) noexcept {
  kernel::IoctlCall call =
      context.command_channel.method(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
  const ib_uverbs_qp_cap cap{attr.cap.max_send_wr, attr.cap.max_recv_wr, attr.cap.max_send_sge,
                             attr.cap.max_recv_sge, attr.cap.max_inline_data};
  call.new_handle(UVERBS_ATTR_CREATE_QP_HANDLE);
  call.handle(UVERBS_ATTR_CREATE_QP_PD_HANDLE, attr.pd->handle);
  if (attr.send_cq != nullptr) {
    call.handle(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, attr.send_cq->handle);
  }
  if (attr.recv_cq != nullptr) {
    call.handle(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, attr.recv_cq->handle);
  }
  if (attr.srq != nullptr) call.handle(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, attr.srq->handle);
  call.in_value(UVERBS_ATTR_CREATE_QP_USER_HANDLE, number);
  call.in_value(UVERBS_ATTR_CREATE_QP_CAP, cap);
  call.constant(UVERBS_ATTR_CREATE_QP_TYPE, attr.qp_type);
  std::uint64_t flags = attr.create_flags;
  if (attr.sq_sig_all != 0) flags |= IB_UVERBS_QP_CREATE_SQ_SIG_ALL;
  if (flags != 0) call.constant(UVERBS_ATTR_CREATE_QP_FLAGS, flags);
  call.out_value(UVERBS_ATTR_CREATE_QP_RESP_CAP, made.cap);
  call.out_value(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, made.qpn);
  call.driver(driver);
  if (const int error = context.command_channel.call(call)) return error;
  return call.take_handle(UVERBS_ATTR_CREATE_QP_HANDLE, made.handle);
}

int create_by_command(Context& context, const ibv_qp_init_attr_ex& attr, std::uint64_t number,
                      const kernel::DriverData& driver, Made& made) noexcept {
  if (attr.create_flags != 0) return EOPNOTSUPP;
  ib_uverbs_create_qp request{};
  request.user_handle = number;
  request.pd_handle = attr.pd->handle;
  request.send_cq_handle = handle_of(attr.send_cq);
  request.recv_cq_handle = handle_of(attr.recv_cq);
  request.srq_handle = attr.srq == nullptr ? 0 : attr.srq->handle;
  request.max_send_wr = attr.cap.max_send_wr;
  request.max_recv_wr = attr.cap.max_recv_wr;
  request.max_send_sge = attr.cap.max_send_sge;
  request.max_recv_sge = attr.cap.max_recv_sge;
  request.max_inline_data = attr.cap.max_inline_data;
  request.sq_sig_all = attr.sq_sig_all != 0 ? 1 : 0;
  request.qp_type = static_cast<std::uint8_t>(attr.qp_type);
  request.is_srq = attr.srq != nullptr ? 1 : 0;
  ib_uverbs_create_qp_resp reply{};
  const int error =
      context.command_channel.command(IB_USER_VERBS_CMD_CREATE_QP, request, reply, driver);
  made = {reply.qp_handle,
          reply.qpn,
          {reply.max_send_wr, reply.max_recv_wr, reply.max_send_sge, reply.max_recv_sge,
           reply.max_inline_data}};
  return error;
}

void write_path(const ibv_ah_attr& from, ib_uverbs_qp_dest& to) noexcept {
  std::memcpy(to.dgid, from.grh.dgid.raw, sizeof to.dgid);
  to.flow_label = from.grh.flow_label;
  to.dlid = from.dlid;
  to.sgid_index = from.grh.sgid_index;
  to.hop_limit = from.grh.hop_limit;
  to.traffic_class = from.grh.traffic_class;
  to.sl = from.sl;
  to.src_path_bits = from.src_path_bits;
  to.static_rate = from.static_rate;
  to.is_global = from.is_global;
  to.port_num = from.port_num;
}

void read_path(const ib_uverbs_qp_dest& from, ibv_ah_attr& to) noexcept {
  std::memcpy(to.grh.dgid.raw, from.dgid, sizeof from.dgid);
  to.grh.flow_label = from.flow_label;
  to.dlid = from.dlid;
  to.grh.sgid_index = from.sgid_index;
  to.grh.hop_limit = from.hop_limit;
  to.grh.traffic_class = from.traffic_class;
  to.sl = from.sl;
  to.src_path_bits = from.src_path_bits;
  to.static_rate = from.static_rate;
  to.is_global = from.is_global;
  to.port_num = from.port_num;
}

ib_uverbs_modify_qp request_of(const verbatim::Qp& qp, const ibv_qp_attr& attr, int mask) noexcept {
  ib_uverbs_modify_qp request{};
  write_path(attr.ah_attr, request.dest);
  write_path(attr.alt_ah_attr, request.alt_dest);
  request.qp_handle = qp.plain.handle;
  request.attr_mask = static_cast<std::uint32_t>(mask);
  request.qkey = attr.qkey;
  request.rq_psn = attr.rq_psn;
  request.sq_psn = attr.sq_psn;
  request.dest_qp_num = attr.dest_qp_num;
  // Of the others, drivers refuse some (rxe of Linux 6.12: HUGETLB).
  request.qp_access_flags = attr.qp_access_flags & kRightsOfPeers;
  request.pkey_index = attr.pkey_index;
  request.alt_pkey_index = attr.alt_pkey_index;
  request.qp_state = static_cast<std::uint8_t>(attr.qp_state);
  request.cur_qp_state = static_cast<std::uint8_t>(attr.cur_qp_state);
  request.path_mtu = static_cast<std::uint8_t>(attr.path_mtu);
  request.path_mig_state = static_cast<std::uint8_t>(attr.path_mig_state);
  request.en_sqd_async_notify = attr.en_sqd_async_notify;
  request.max_rd_atomic = attr.max_rd_atomic;
  request.max_dest_rd_atomic = attr.max_dest_rd_atomic;
  request.min_rnr_timer = attr.min_rnr_timer;
  request.port_num = attr.port_num;
  request.timeout = attr.timeout;
  request.retry_cnt = attr.retry_cnt;
  request.rnr_retry = attr.rnr_retry;
  request.alt_port_num = attr.alt_port_num;
  request.alt_timeout = attr.alt_timeout;
  return request;
}

/// What becomes a value of a type that has no others.
bool has_known_values(const ib_uverbs_query_qp_resp& from) noexcept {
  return from.qp_state < IBV_QPS_UNKNOWN && from.cur_qp_state < IBV_QPS_UNKNOWN &&
         from.path_mtu <= IBV_MTU_4096 && from.path_mig_state <= IBV_MIG_ARMED;
}

void read_attributes(const ib_uverbs_query_qp_resp& from, ibv_qp_attr& to) noexcept {
  to.qp_state = static_cast<ibv_qp_state>(from.qp_state);
  to.cur_qp_state = static_cast<ibv_qp_state>(from.cur_qp_state);
  to.path_mtu = static_cast<ibv_mtu>(from.path_mtu);
  to.path_mig_state = static_cast<ibv_mig_state>(from.path_mig_state);
  to.qkey = from.qkey;
  to.rq_psn = from.rq_psn;
  to.sq_psn = from.sq_psn;
  to.dest_qp_num = from.dest_qp_num;
  to.qp_access_flags = from.qp_access_flags;
  read_path(from.dest, to.ah_attr);
  read_path(from.alt_dest, to.alt_ah_attr);
  to.pkey_index = from.pkey_index;
  to.alt_pkey_index = from.alt_pkey_index;
  to.sq_draining = from.sq_draining;
  to.max_rd_atomic = from.max_rd_atomic;
  to.max_dest_rd_atomic = from.max_dest_rd_atomic;
  to.min_rnr_timer = from.min_rnr_timer;
  to.port_num = from.port_num;
  to.timeout = from.timeout;
  to.retry_cnt = from.retry_cnt;
  to.rnr_retry = from.rnr_retry;
  to.alt_port_num = from.alt_port_num;
  to.alt_timeout = from.alt_timeout;
}

}  // namespace

int create_qp(Context& context, ibv_qp_init_attr_ex& attr, Qp& qp,
              const kernel::DriverData& driver) noexcept {
  if (attr.pd == nullptr || asks_for_hashing(attr) || attr.max_tso_header != 0) return EOPNOTSUPP;
  const std::uint64_t number = context.objects.add(Kind::kQp, static_cast<Qp*>(&qp));
  if (number == 0) return ENOMEM;
  Made made;
  int error = create_by_method(context, attr, number, driver, made);
  if (CommandChannel::has_no_method(error)) {
    error = create_by_command(context, attr, number, driver, made);
  }
  constexpr std::uint32_t kLargestQpn = 0xffffff;
  if (error == 0 && made.qpn > kLargestQpn) error = EPROTO;
  if (error == 0) error = context.objects.claim(made.handle);
  if (error != 0) {
    context.objects.remove(number);
    return error;
  }
  qp.number = number;
  qp.plain.context = context.handle();
  qp.plain.handle = made.handle;
  qp.plain.qp_num = made.qpn;
  attr.cap = {made.cap.max_send_wr, made.cap.max_recv_wr, made.cap.max_send_sge,
              made.cap.max_recv_sge, made.cap.max_inline_data};
  return 0;
}

int destroy_qp(Qp& qp) noexcept {
  Context& context = context_of(qp);
  ib_uverbs_destroy_qp_resp reply{};
  const int error = forget_handle(
      context, qp.plain.handle,
      [&](CommandChannel& channel) noexcept {
        kernel::IoctlCall call = channel.method(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY);
        call.handle(UVERBS_ATTR_DESTROY_QP_HANDLE, qp.plain.handle);
        call.out_value(UVERBS_ATTR_DESTROY_QP_RESP, reply);
        return channel.call(call);
      },
      [&](CommandChannel& channel) noexcept {
        ib_uverbs_destroy_qp request{};
        request.qp_handle = qp.plain.handle;
        return channel.command(IB_USER_VERBS_CMD_DESTROY_QP, request, reply);
      });
  if (error != 0) return error;
  wait_for_async_acks(qp, context.objects.remove(qp.number).asynchronous);
  return 0;
}

int modify_qp(verbatim::Qp& qp, ibv_qp_attr& attr, int mask) noexcept {
  // A limit needs the extended command, which only adapters with such a limit have a use for.
  if ((mask & IBV_QP_RATE_LIMIT) != 0) return EOPNOTSUPP;
  // Of the port's MTUs the larger one: a path that stays on this host has no wire to fit.
  if (const int error = check_qp_values(qp, attr, mask, &ibv_port_attr::max_mtu)) return error;
  ib_uverbs_modify_qp request = request_of(qp, attr, mask);
  const int error = context_of(qp).command_channel.command(IB_USER_VERBS_CMD_MODIFY_QP, request);
  if (error == ENODATA) {
    log_refusal(
        "ibv_modify_qp: QP 0x%06x: row %u of the port's GID table is empty: no path from it",
        qp.plain.qp_num, attr.ah_attr.grh.sgid_index);
    return EINVAL;
  }
  // There everything has failed: a program that ends its queue pairs before it destroys them goes
  // on.
  const bool is_there = (mask & IBV_QP_STATE) != 0 && attr.qp_state == IBV_QPS_ERR &&
                        is_of_the_gone(context_of(qp), error);
  if (error != 0 && !is_there) return error;
  if ((mask & IBV_QP_STATE) != 0) qp.plain.state = attr.qp_state;
  if ((mask & IBV_QP_PORT) != 0) qp.attributes.port_num = attr.port_num;
  return 0;
}

int lead_in_kernel(const verbatim::Qp& qp, ibv_qp_state state) noexcept {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  ib_uverbs_modify_qp request = request_of(qp, attr, IBV_QP_STATE);
  return context_of(qp).command_channel.command(IB_USER_VERBS_CMD_MODIFY_QP, request);
}

int query_qp(verbatim::Qp& qp, ibv_qp_attr& attr, int mask, ibv_qp_init_attr& init) noexcept {
  ib_uverbs_query_qp request{};
  request.qp_handle = qp.plain.handle;
  request.attr_mask = static_cast<std::uint32_t>(mask);
  ib_uverbs_query_qp_resp reply{};
  const int error =
      context_of(qp).command_channel.command(IB_USER_VERBS_CMD_QUERY_QP, request, reply);
  constexpr int kKnownHere = IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_CAP;
  if ((mask & ~kKnownHere) == 0 && is_of_the_gone(context_of(qp), error)) {
    reply.qp_state = IBV_QPS_ERR;
  } else if (error != 0) {
    return error;
  }
  if (!has_known_values(reply)) return EPROTO;
  read_attributes(reply, attr);
  // What modify_qp may be told to assume; asked, there is one state, and drivers forget the other.
  attr.cur_qp_state = attr.qp_state;
  // The rings are as large as they were made, whatever a driver remembers of the request.
  attr.cap = init.cap;
  if ((mask & IBV_QP_STATE) != 0) qp.plain.state = attr.qp_state;
  return 0;
}

int attach_mcast(verbatim::Qp& qp, const ibv_gid& gid, std::uint16_t lid) noexcept {
  ib_uverbs_attach_mcast request{};
  std::memcpy(request.gid, gid.raw, sizeof request.gid);
  request.qp_handle = qp.plain.handle;
  request.mlid = lid;
  return context_of(qp).command_channel.command(IB_USER_VERBS_CMD_ATTACH_MCAST, request);
}

int detach_mcast(verbatim::Qp& qp, const ibv_gid& gid, std::uint16_t lid) noexcept {
  ib_uverbs_detach_mcast request{};
  std::memcpy(request.gid, gid.raw, sizeof request.gid);
  request.qp_handle = qp.plain.handle;
  request.mlid = lid;
  return context_of(qp).command_channel.command(IB_USER_VERBS_CMD_DETACH_MCAST, request);
}

}  // namespace verbatim::uverbs
