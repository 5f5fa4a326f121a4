// SPDX-License-Identifier: BSD-2-Clause
#include "providers/uverbs/context.hpp"

#include <arpa/inet.h>
#include <endian.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "providers/uverbs/discovery.hpp"
#include "providers/uverbs/node.hpp"
#include "providers/uverbs/pinned_memory.hpp"
#include "providers/uverbs/queue_pairs.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/proc_text.hpp"

namespace verbatim::uverbs {
namespace {

/// The method of newer kernels, which makes the event descriptor a second call.
int get_context_by_method(Context& context, const kernel::DriverData& driver,
                          std::uint32_t& vectors, int& async_fd) noexcept {
  CommandChannel& channel = context.command_channel;
  kernel::IoctlCall get = channel.method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
  get.out_value(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, vectors);
  get.out_value(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, context.core_support);
  get.driver(driver);
  if (const int error = channel.call(get)) return error;
  kernel::IoctlCall events =
      channel.method(UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC);
  events.new_fd(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE);
  if (const int error = channel.call(events)) return error;
  return events.take_fd(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, async_fd);
}

int get_context_by_command(Context& context, const kernel::DriverData& driver,
                           std::uint32_t& vectors, int& async_fd) noexcept {
  ib_uverbs_get_context request{};
  ib_uverbs_get_context_resp reply{};
  const int error =
      context.command_channel.command(IB_USER_VERBS_CMD_GET_CONTEXT, request, reply, driver);
  if (error != 0) return error;
  vectors = reply.num_comp_vectors;
  async_fd = static_cast<int>(reply.async_fd);
  return async_fd < 0 ? EPROTO : 0;
}

int as_int(std::uint32_t number) noexcept {
  return number > INT32_MAX ? INT32_MAX : static_cast<int>(number);
}

/// rxe and siw have no firmware: their number is the three parts of a version, 16 bits each.
void print_firmware(char (&text)[64], std::uint64_t version) noexcept {
  std::snprintf(text, sizeof text, "%u.%u.%u", static_cast<unsigned>(version >> 32 & 0xffff),
                static_cast<unsigned>(version >> 16 & 0xffff),
                static_cast<unsigned>(version & 0xffff));
}

void read_base(const ib_uverbs_query_device_resp& from, ibv_device_attr& to) noexcept {
  print_firmware(to.fw_ver, from.fw_ver);
  to.node_guid = from.node_guid;
  to.sys_image_guid = from.sys_image_guid;
  to.max_mr_size = from.max_mr_size;
  to.page_size_cap = from.page_size_cap;
  to.vendor_id = from.vendor_id;
  to.vendor_part_id = from.vendor_part_id;
  to.hw_ver = from.hw_ver;
  to.max_qp = as_int(from.max_qp);
  to.max_qp_wr = as_int(from.max_qp_wr);
  to.device_cap_flags = from.device_cap_flags;
  to.max_sge = as_int(from.max_sge);
  to.max_sge_rd = as_int(from.max_sge_rd);
  to.max_cq = as_int(from.max_cq);
  to.max_cqe = as_int(from.max_cqe);
  to.max_mr = as_int(from.max_mr);
  to.max_pd = as_int(from.max_pd);
  to.max_qp_rd_atom = as_int(from.max_qp_rd_atom);
  to.max_ee_rd_atom = as_int(from.max_ee_rd_atom);
  to.max_res_rd_atom = as_int(from.max_res_rd_atom);
  to.max_qp_init_rd_atom = as_int(from.max_qp_init_rd_atom);
  to.max_ee_init_rd_atom = as_int(from.max_ee_init_rd_atom);
  to.atomic_cap =
      from.atomic_cap > IBV_ATOMIC_GLOB ? IBV_ATOMIC_NONE : ibv_atomic_cap(from.atomic_cap);
  to.max_ee = as_int(from.max_ee);
  to.max_rdd = as_int(from.max_rdd);
  to.max_mw = as_int(from.max_mw);
  to.max_raw_ipv6_qp = as_int(from.max_raw_ipv6_qp);
  to.max_raw_ethy_qp = as_int(from.max_raw_ethy_qp);
  to.max_mcast_grp = as_int(from.max_mcast_grp);
  to.max_mcast_qp_attach = as_int(from.max_mcast_qp_attach);
  to.max_total_mcast_qp_attach = as_int(from.max_total_mcast_qp_attach);
  to.max_ah = as_int(from.max_ah);
  to.max_fmr = as_int(from.max_fmr);
  to.max_map_per_fmr = as_int(from.max_map_per_fmr);
  to.max_srq = as_int(from.max_srq);
  to.max_srq_wr = as_int(from.max_srq_wr);
  to.max_srq_sge = as_int(from.max_srq_sge);
  to.max_pkeys = from.max_pkeys;
  to.local_ca_ack_delay = from.local_ca_ack_delay;
  to.phys_port_cnt = from.phys_port_cnt;
}

void read_more(const ib_uverbs_ex_query_device_resp& from, ibv_device_attr_ex& to) noexcept {
  to.odp_caps.general_caps = from.odp_caps.general_caps;
  to.odp_caps.per_transport_caps.rc_odp_caps = from.odp_caps.per_transport_caps.rc_odp_caps;
  to.odp_caps.per_transport_caps.uc_odp_caps = from.odp_caps.per_transport_caps.uc_odp_caps;
  to.odp_caps.per_transport_caps.ud_odp_caps = from.odp_caps.per_transport_caps.ud_odp_caps;
  to.xrc_odp_caps = from.xrc_odp_caps;
  to.completion_timestamp_mask = from.timestamp_mask;
  to.hca_core_clock = from.hca_core_clock;
  to.device_cap_flags_ex = from.device_cap_flags_ex;
  to.rss_caps.supported_qpts = from.rss_caps.supported_qpts;
  to.rss_caps.max_rwq_indirection_tables = from.rss_caps.max_rwq_indirection_tables;
  to.rss_caps.max_rwq_indirection_table_size = from.rss_caps.max_rwq_indirection_table_size;
  to.max_wq_type_rq = from.max_wq_type_rq;
  to.raw_packet_caps = from.raw_packet_caps;
  to.tm_caps.max_rndv_hdr_size = from.tm_caps.max_rndv_hdr_size;
  to.tm_caps.max_num_tags = from.tm_caps.max_num_tags;
  to.tm_caps.flags = from.tm_caps.flags;
  to.tm_caps.max_ops = from.tm_caps.max_ops;
  to.tm_caps.max_sge = from.tm_caps.max_sge;
  to.cq_mod_caps.max_cq_count = from.cq_moderation_caps.max_cq_moderation_count;
  to.cq_mod_caps.max_cq_period = from.cq_moderation_caps.max_cq_moderation_period;
  to.max_dm_size = from.max_dm_size;
}

/// Which handle the event is about is the kernel's word; what object that is, our table's.
bool read_event(Context& context, const ib_uverbs_async_event_desc& from,
                ibv_async_event& to) noexcept {
  to = {};
  // A number beyond the last is no value of the type.
  if (from.event_type > IBV_EVENT_DEVICE_SPEED_CHANGE) return false;
  to.event_type = static_cast<ibv_event_type>(from.event_type);
  const auto deliver = [&](Kind kind) noexcept {
    return context.objects.deliver(kind, from.element, &Delivered::asynchronous);
  };
  switch (to.event_type) {
    case IBV_EVENT_CQ_ERR: {
      auto* const cq = static_cast<Cq*>(deliver(Kind::kCq));
      if (cq != nullptr) to.element.cq = &cq->plain;
      return cq != nullptr;
    }
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED: {
      context.troubles.fetch_add(1, std::memory_order_relaxed);
      auto* const qp = static_cast<Qp*>(deliver(Kind::kQp));
      if (qp == nullptr) return false;
      // It stays: whoever destroys it waits until this event is acknowledged.
      note_event(*qp, to.event_type);
      to.element.qp = &qp->plain;
      return true;
    }
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED: {
      auto* const srq = static_cast<Srq*>(deliver(Kind::kSrq));
      if (srq != nullptr) to.element.srq = &srq->plain;
      return srq != nullptr;
    }
    case IBV_EVENT_DEVICE_FATAL:
      context.command_channel.doubt();
      return true;
    case IBV_EVENT_DEVICE_SPEED_CHANGE:  // which port's, ibv_query_port tells
      return true;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
      to.element.port_num = static_cast<int>(from.element);
      return from.element >= 1 && from.element <= context.port_count;
    default:
      return false;
  }
}

}  // namespace

int start_context(Context& context, const kernel::DriverData& driver) noexcept {
  std::uint32_t vectors = 0;
  int async_fd = -1;
  int error = get_context_by_method(context, driver, vectors, async_fd);
  if (CommandChannel::has_no_method(error)) {
    error = get_context_by_command(context, driver, vectors, async_fd);
  }
  if (error != 0) {
    log_error("%s: %s did not make a context: %s%s", context.device.plain.name,
              context.device.plain.dev_name, std::strerror(error),
              error == EPROTO ? " (its answer is none of a uverbs device)" : "");
    return error;
  }
  context.async.reset(async_fd);
  context.extended.context.cmd_fd = context.command_channel.fd();
  context.extended.context.async_fd = async_fd;
  // A device has one at least; programs divide by the number.
  context.extended.context.num_comp_vectors = vectors == 0 ? 1 : as_int(vectors);
  return 0;
}

int open_context(Context& context, const kernel::DriverData& driver) noexcept {
  UniqueFd fd;
  if (const int error = open_node(context.device, fd)) return error;
  context.command_channel.adopt(static_cast<UniqueFd&&>(fd));
  const int error = start_context(context, driver);
  if (error == 0) {
    prepare_for_forks();
    warn_of_low_memlock(context.device.plain.name);
  }
  return error;
}

int query_device(verbatim::Context& plain, ibv_device_attr_ex& attr) noexcept {
  auto& context = static_cast<Context&>(plain);
  ib_uverbs_ex_query_device request{};
  ib_uverbs_ex_query_device_resp reply{};
  int error = context.command_channel.command(IB_USER_VERBS_EX_CMD_QUERY_DEVICE | kernel::kExtended,
                                              request, reply);
  if (error == 0) {
    constexpr std::uint32_t kLeast =
        offsetof(ib_uverbs_ex_query_device_resp, response_length) + sizeof reply.response_length;
    if (reply.response_length < kLeast || reply.response_length > sizeof reply) return EPROTO;
    // What an older kernel does not tell stays nothing.
    std::memset(reinterpret_cast<unsigned char*>(&reply) + reply.response_length, 0,
                sizeof reply - reply.response_length);
    read_more(reply, attr);
  } else if (error == EOPNOTSUPP || error == ENOSYS || error == EINVAL) {
    ib_uverbs_query_device short_request{};
    error =
        context.command_channel.command(IB_USER_VERBS_CMD_QUERY_DEVICE, short_request, reply.base);
  }
  if (error != 0) return error;
  read_base(reply.base, attr.orig_attr);
  attr.phys_port_cnt_ex = reply.base.phys_port_cnt;
  return 0;
}

int query_port(verbatim::Context& plain, std::uint8_t port, ibv_port_attr& attr) noexcept {
  CommandChannel& channel = static_cast<Context&>(plain).command_channel;
  ib_uverbs_query_port_resp_ex reply{};
  kernel::IoctlCall query = channel.method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
  query.constant(UVERBS_ATTR_QUERY_PORT_PORT_NUM, port);
  query.out_value(UVERBS_ATTR_QUERY_PORT_RESP, reply);
  int error = channel.call(query);
  if (CommandChannel::has_no_method(error)) {
    ib_uverbs_query_port request{};
    request.port_num = port;
    error = channel.command(IB_USER_VERBS_CMD_QUERY_PORT, request, reply.legacy_resp);
  }
  if (error != 0) return error;
  const ib_uverbs_query_port_resp& from = reply.legacy_resp;
  if (from.state > IBV_PORT_ACTIVE_DEFER || from.max_mtu > IBV_MTU_4096 ||
      from.active_mtu > IBV_MTU_4096) {
    return EPROTO;
  }
  attr.state = static_cast<ibv_port_state>(from.state);
  attr.max_mtu = static_cast<ibv_mtu>(from.max_mtu);
  attr.active_mtu = static_cast<ibv_mtu>(from.active_mtu);
  attr.gid_tbl_len = as_int(from.gid_tbl_len);
  attr.port_cap_flags = from.port_cap_flags;
  attr.max_msg_sz = from.max_msg_sz;
  attr.bad_pkey_cntr = from.bad_pkey_cntr;
  attr.qkey_viol_cntr = from.qkey_viol_cntr;
  attr.pkey_tbl_len = from.pkey_tbl_len;
  attr.lid = from.lid;
  attr.sm_lid = from.sm_lid;
  attr.lmc = from.lmc;
  attr.max_vl_num = from.max_vl_num;
  attr.sm_sl = from.sm_sl;
  attr.subnet_timeout = from.subnet_timeout;
  attr.init_type_reply = from.init_type_reply;
  attr.active_width = from.active_width;
  attr.active_speed = from.active_speed;
  attr.phys_state = from.phys_state;
  attr.link_layer = from.link_layer;
  attr.flags = from.flags;
  attr.port_cap_flags2 = reply.port_cap_flags2;
  return 0;
}

int query_pkey(verbatim::Context& context, std::uint8_t port, int index, __be16& pkey) noexcept {
  char path[sizeof context.device.plain.ibdev_path + 48];
  std::snprintf(path, sizeof path, "%s/ports/%u/pkeys/%d", context.device.plain.ibdev_path, port,
                index);
  char text[16];
  if (!read_proc_text(path, text, sizeof text)) return EINVAL;
  char* end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 16);
  if (end == text || value > UINT16_MAX) return EPROTO;
  pkey = htons(static_cast<std::uint16_t>(value));
  return 0;
}

int event_error(Context& context, std::ptrdiff_t got, std::size_t size) noexcept {
  const int error = got < 0 ? errno : static_cast<std::size_t>(got) == size ? 0 : EIO;
  if (error == EIO) context.command_channel.doubt();
  return error;
}

int get_async_event(verbatim::Context& plain, ibv_async_event& event) noexcept {
  auto& context = static_cast<Context&>(plain);
  for (;;) {
    ib_uverbs_async_event_desc record;
    const ssize_t got = ::read(context.extended.context.async_fd, &record, sizeof record);
    if (const int error = event_error(context, got, sizeof record)) return error;
    if (read_event(context, record, event)) return 0;
    log_warn("%s: an event of type %u about nothing that is known here was left out",
             context.device.plain.name, record.event_type);
  }
}

int destroyed(int error) noexcept { return error == EIO ? 0 : error; }

}  // namespace verbatim::uverbs
