// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/device.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace verbatim::harness {

const char* name_of(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return "RC";
    case IBV_QPT_UC:
      return "UC";
    case IBV_QPT_UD:
      return "UD";
    case IBV_QPT_XRC_SEND:
      return "XRC_SEND";
    case IBV_QPT_XRC_RECV:
      return "XRC_RECV";
    case IBV_QPT_RAW_PACKET:
      return "RAW_PACKET";
    default:
      return "DRIVER";
  }
}

const char* name_of(ibv_qp_state state) {
  constexpr const char* kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return kNames[state];
}

std::string unless_unsupported(const char* what, int error) {
  if (error == 0) return {};
  if (error != EOPNOTSUPP && error != ENOSYS) {
    ADD_FAILURE() << what << ": " << std::strerror(error);
  }
  AllowedLog("verbatim: ");
  return std::string("the device has no ") + what + ": " + std::strerror(error);
}

bool is_mapped_ipv4(const ibv_gid& gid) {
  constexpr unsigned char kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, kPrefix, sizeof kPrefix) == 0;
}

ibv_ah_attr path_to_self(const Session& session) {
  ibv_ah_attr path{};
  path.dlid = session.port.lid;
  path.port_num = 1;
  if (session.port.link_layer == IBV_LINK_LAYER_ETHERNET) {
    path.is_global = 1;
    path.grh.dgid = session.gid;
    path.grh.sgid_index = session.gid_index;
    path.grh.hop_limit = 1;
  }
  return path;
}

int attributes_for(ibv_qp_type type, ibv_qp_state state, const Session& session,
                   std::uint32_t peer_qpn, ibv_qp_attr& attr) {
  const bool ud = type == IBV_QPT_UD;
  const bool answers = type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV;
  const bool asks = type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND;
  attr.qp_state = state;
  attr.port_num = 1;
  attr.qp_access_flags = kAllAccess;
  attr.qkey = kQkey;
  attr.path_mtu = std::min(IBV_MTU_1024, session.port.active_mtu);
  attr.dest_qp_num = peer_qpn;
  attr.rq_psn = attr.sq_psn = 0x123456;
  attr.max_dest_rd_atomic = static_cast<std::uint8_t>(std::min(4, session.attr.max_qp_rd_atom));
  attr.max_rd_atomic = static_cast<std::uint8_t>(std::min(4, session.attr.max_qp_init_rd_atom));
  attr.min_rnr_timer = 1;
  attr.ah_attr = path_to_self(session);
  attr.timeout = 14;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  switch (state) {
    case IBV_QPS_INIT:
      return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
             (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    case IBV_QPS_RTR:
      if (ud) return IBV_QP_STATE;
      return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             (answers ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
    case IBV_QPS_RTS:
      return IBV_QP_STATE | IBV_QP_SQ_PSN |
             (asks ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
                   : 0) |
             (type == IBV_QPT_XRC_RECV ? IBV_QP_TIMEOUT : 0);
    default:
      return IBV_QP_STATE;
  }
}

std::string lacks_type(ibv_context* context, ibv_qp_type type) {
  const std::string who = std::string(name_of(type)) + " queue pairs";
  const PdHandle pd(ibv_alloc_pd(context));
  const CqHandle cq(ibv_create_cq(context, 1, nullptr, nullptr, 0));
  XrcdHandle xrcd;
  ibv_qp_init_attr_ex init{};
  init.qp_type = type;
  init.send_cq = init.recv_cq = cq.get();
  init.cap = {1, 1, 1, 1, 0};
  init.comp_mask = IBV_QP_INIT_ATTR_PD;
  init.pd = pd.get();
  if (type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV) {
    ibv_xrcd_init_attr domain{IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, O_CREAT};
    xrcd.reset(ibv_open_xrcd(context, &domain));
    if (!xrcd) return unless_unsupported("XRC domains", errno);
    init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
  }
  if (type == IBV_QPT_XRC_RECV) {
    init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    init.xrcd = xrcd.get();
    init.send_cq = init.recv_cq = nullptr;
    init.cap = {};
  }
  const QpHandle qp(ibv_create_qp_ex(context, &init));
  return qp ? std::string() : unless_unsupported(who.c_str(), errno);
}

std::string lacks_type(const char* device, ibv_qp_type type) {
  const Session session(device);
  return lacks_type(session.context.get(), type);
}

std::string lacks_srq(const char* device) {
  const Session session(device);
  if (session.attr.max_srq == 0) return "the device says max_srq 0";
  return {};
}

ibv_comp_channel* DeviceObjects::channel() {
  channels_.emplace_back(ibv_create_comp_channel(context()));
  return channels_.back().get();
}

ibv_cq* DeviceObjects::cq(int depth, ibv_comp_channel* with, void* cookie) {
  cqs_.emplace_back(ibv_create_cq(context(), depth, cookie, with, 0));
  return cqs_.back().get();
}

ibv_comp_cntr* DeviceObjects::counter(ibv_comp_cntr_type type) {
  ibv_comp_cntr_init_attr attr{0, type, 0};
  counters_.emplace_back(ibv_create_comp_cntr(context(), &attr));
  return counters_.back().get();
}

ibv_mr* DeviceObjects::mr(void* memory, std::size_t size, int access) {
  mrs_.emplace_back(ibv_reg_mr(pd(), memory, size, access));
  return mrs_.back().get();
}

ibv_srq* DeviceObjects::srq(std::uint32_t depth, std::uint32_t max_sge) {
  ibv_srq_init_attr init{};
  init.attr = {depth, max_sge, 0};
  srqs_.emplace_back(ibv_create_srq(pd(), &init));
  return srqs_.back().get();
}

ibv_xrcd* DeviceObjects::xrcd() {
  if (!xrcd_) {
    ibv_xrcd_init_attr init{IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, O_CREAT};
    xrcd_.reset(ibv_open_xrcd(context(), &init));
  }
  return xrcd_.get();
}

ibv_ah* DeviceObjects::ah_to_self() {
  ibv_ah_attr path = path_to_self(session());
  ahs_.emplace_back(ibv_create_ah(pd(), &path));
  return ahs_.back().get();
}

ibv_qp* DeviceObjects::qp(ibv_qp_type type, ibv_cq* both, ibv_srq* from) {
  ibv_qp_init_attr_ex init{};
  init.qp_type = type;
  if (type == IBV_QPT_XRC_RECV) {
    init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    init.xrcd = xrcd();
  } else {
    init.comp_mask = IBV_QP_INIT_ATTR_PD;
    init.pd = pd();
    init.send_cq = init.recv_cq = both;
    init.srq = from;
    const bool receives = type != IBV_QPT_XRC_SEND;
    init.cap = {16, receives ? 16u : 0u, 2, receives ? 2u : 0u, 32};
  }
  qps_.emplace_back(ibv_create_qp_ex(context(), &init));
  return qps_.back().get();
}

int DeviceObjects::destroy(ibv_qp* qp) {
  const auto at =
      std::find_if(qps_.begin(), qps_.end(), [&](auto& own) { return own.get() == qp; });
  const int error = ibv_destroy_qp(qp);
  if (error == 0) (void)at->release();
  return error;
}

int DeviceObjects::to_state(ibv_qp* qp, ibv_qp_state state) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

int DeviceObjects::lead(ibv_qp* qp, ibv_qp_state state, const ibv_qp* peer) {
  if (state == IBV_QPS_RESET) return to_state(qp, state);
  const std::uint32_t peer_qpn = peer == nullptr ? qp->qp_num : peer->qp_num;
  const bool straight_on = state <= IBV_QPS_RTS;
  const int last = state == IBV_QPS_ERR ? IBV_QPS_INIT : straight_on ? state : IBV_QPS_RTS;
  for (int step = IBV_QPS_INIT; step <= last; ++step) {
    ibv_qp_attr attr{};
    const int mask =
        attributes_for(qp->qp_type, static_cast<ibv_qp_state>(step), session(), peer_qpn, attr);
    if (const int error = ibv_modify_qp(qp, &attr, mask)) return error;
  }
  return straight_on ? 0 : to_state(qp, state);
}

ibv_qp_state DeviceObjects::state(ibv_qp* qp) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  EXPECT_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
  return attr.qp_state;
}

std::pair<ibv_qp*, ibv_qp*> DeviceObjects::connected(ibv_qp_type type, ibv_cq* both) {
  ibv_qp* const a = qp(type, both);
  ibv_qp* const b = qp(type, both);
  EXPECT_EQ(lead(a, IBV_QPS_RTS, b), 0);
  EXPECT_EQ(lead(b, IBV_QPS_RTS, a), 0);
  return {a, b};
}

std::vector<ibv_wc> DeviceObjects::poll(ibv_cq* cq, std::size_t count) {
  std::vector<ibv_wc> all(count);
  std::size_t found = 0;
  EXPECT_TRUE(wait_until([&] {
    const int n = ibv_poll_cq(cq, static_cast<int>(count - found), all.data() + found);
    if (n > 0) found += static_cast<std::size_t>(n);
    return n < 0 || found == count;
  })) << found
      << " of " << count << " completions came";
  return all;
}

int DeviceObjects::post_send(ibv_qp* qp, std::uint64_t wr_id, const void* data,
                             std::uint32_t length, std::uint32_t lkey, unsigned flags) {
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(data), length, lkey};
  ibv_send_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = &sge;
  wr.num_sge = length == 0 ? 0 : 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = flags;
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(qp, &wr, &bad);
}

int DeviceObjects::post_receive(ibv_qp* qp, std::uint64_t wr_id, void* to, std::uint32_t length,
                                std::uint32_t lkey) {
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(to), length, lkey};
  ibv_recv_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = &sge;
  wr.num_sge = length == 0 ? 0 : 1;
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(qp, &wr, &bad);
}

}  // namespace verbatim::harness
