// SPDX-License-Identifier: BSD-2-Clause
//
// What shm can do, on one screen. A slot that is not named here answers EOPNOTSUPP.
#pragma once

#include "providers/shm/calls/cursor.hpp"
#include "providers/shm/calls/hot.hpp"
#include "providers/shm/control/bind_window.hpp"
#include "providers/shm/control/cq_create.hpp"
#include "providers/shm/control/qp_control.hpp"
#include "providers/shm/control/qp_create.hpp"
#include "providers/shm/control/srq_create.hpp"
#include "providers/shm/control/xrc_target.hpp"
#include "providers/shm/device/device.hpp"
#include "providers/shm/device/map_remote.hpp"
#include "providers/shm/device/query_region.hpp"
#include "providers/shm/memory/buffers.hpp"
#include "providers/shm/memory/context.hpp"
#include "providers/shm/memory/device_memory.hpp"
#include "providers/shm/memory/region.hpp"
#include "providers/shm/poll/completion_counters.hpp"
#include "providers/shm/queues/comp_channel.hpp"
#include "providers/shm/queues/cq.hpp"
#include "providers/shm/queues/cq_events.hpp"
#include "providers/shm/queues/domain.hpp"
#include "providers/shm/queues/failure_log.hpp"
#include "providers/shm/queues/moderation.hpp"
#include "providers/shm/queues/qp.hpp"
#include "providers/shm/queues/shared_posting.hpp"
#include "providers/shm/queues/shared_receive.hpp"
#include "providers/shm/ud/datagram.hpp"
#include "providers/shm/ud/multicast.hpp"
#include "providers/shm/windows/windows.hpp"
#include "providers/shm/xrc/xrc_queue.hpp"
#include "runtime/verbs/software/shared_receives.hpp"
#include "runtime/verbs/software/soft_device.hpp"
#include "runtime/verbs/software/soft_domains.hpp"

namespace verbatim::shm {

struct Shm {
  static constexpr const char* kName = "shm";
  using Context = shm::Context;
  using Mr = shm::Mr;
  using Cq = shm::Cq;
  using Qp = shm::Qp;

  static constexpr auto list_devices = shm::list_devices;
  static constexpr auto open = shm::open;
  static constexpr auto close = shm::close;
  static constexpr auto query_device = shm::query_device;
  static constexpr auto query_port = shm::query_port;
  static constexpr auto query_gid = shm::query_gid;
  static constexpr auto resolve_eth_l2 = shm::resolve_eth_l2;
  static constexpr auto query_pkey = SoftPortVerbs::query_pkey;
  static constexpr auto query_rt_values = shm::query_rt_values;
  static constexpr auto get_async_event = shm::get_async_event;

  static constexpr auto alloc_pd = SoftDomainVerbs::alloc_pd;
  static constexpr auto dealloc_pd = SoftDomainVerbs::dealloc_pd;
  static constexpr auto alloc_td = SoftDomainVerbs::alloc_td;
  static constexpr auto dealloc_td = SoftDomainVerbs::dealloc_td;
  static constexpr auto alloc_parent_domain = shm::alloc_parent_domain;
  static constexpr auto open_xrcd = shm::open_xrcd;
  static constexpr auto close_xrcd = shm::close_xrcd;
  static constexpr auto reg_mr = shm::reg_mr;
  static constexpr auto rereg_mr = shm::rereg_mr;
  static constexpr auto dereg_mr = shm::dereg_mr;
  static constexpr auto reg_dmabuf_mr = shm::reg_dmabuf_mr;
  static constexpr auto alloc_null_mr = shm::alloc_null_mr;
  static constexpr auto alloc_buf = shm::alloc_buf;
  static constexpr auto free_buf = shm::free_buf;
  static constexpr auto advise_mr = shm::advise_mr;
  static constexpr auto alloc_dm = shm::alloc_dm;
  static constexpr auto free_dm = shm::free_dm;
  static constexpr auto reg_dm_mr = shm::reg_dm_mr;
  static constexpr auto query_mr_peers = shm::query_mr_peers;
  static constexpr auto map_remote = shm::map_remote;
  static constexpr auto alloc_mw = shm::alloc_mw;
  static constexpr auto bind_mw = shm::bind_mw;
  static constexpr auto dealloc_mw = shm::dealloc_mw;
  static constexpr auto create_ah = shm::create_ah;
  static constexpr auto destroy_ah = SoftAddressVerbs<Ah>::destroy_ah;

  static constexpr auto create_comp_channel = shm::create_comp_channel;
  static constexpr auto destroy_comp_channel = shm::destroy_comp_channel;
  static constexpr auto get_cq_event = shm::get_cq_event;
  static constexpr auto create_cq = shm::create_cq;
  static constexpr auto resize_cq = shm::resize_cq;
  static constexpr auto modify_cq = shm::modify_cq;
  static constexpr auto destroy_cq = shm::destroy_cq;
  static constexpr auto req_notify_cq = shm::req_notify_cq;
  static constexpr auto poll_cq = shm::poll_cq;

  static constexpr auto query_comp_cntr_caps = shm::query_comp_cntr_caps;
  static constexpr auto create_comp_cntr = shm::create_comp_cntr;
  static constexpr auto destroy_comp_cntr = shm::destroy_comp_cntr;
  static constexpr auto set_comp_cntr = shm::set_comp_cntr;
  static constexpr auto inc_comp_cntr = shm::inc_comp_cntr;
  static constexpr auto read_comp_cntr = shm::read_comp_cntr;
  static constexpr auto attach_comp_cntr = shm::attach_comp_cntr;

  static constexpr auto create_srq = shm::create_srq;
  static constexpr auto modify_srq = SharedReceiveVerbs<Srq>::modify_srq;
  static constexpr auto query_srq = SharedReceiveVerbs<Srq>::query_srq;
  static constexpr auto destroy_srq = shm::destroy_srq;
  static constexpr auto get_srq_num = shm::get_srq_num;
  static constexpr auto post_srq_recv = shm::post_srq_recv;

  static constexpr auto create_qp = shm::create_qp;
  static constexpr auto open_qp = shm::open_qp;
  static constexpr auto modify_qp = shm::modify_qp;
  static constexpr auto query_qp = shm::query_qp;
  static constexpr auto explain_qp = shm::explain_qp;
  static constexpr auto destroy_qp = shm::destroy_qp;
  static constexpr auto attach_mcast = shm::attach_mcast;
  static constexpr auto detach_mcast = shm::detach_mcast;
  static constexpr auto post_send = shm::post_send;
  static constexpr auto post_recv = shm::post_recv;
};

}  // namespace verbatim::shm
