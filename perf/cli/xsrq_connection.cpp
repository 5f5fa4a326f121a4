// SPDX-License-Identifier: BSD-2-Clause
// Attributes of the transitions: IBTA A14, man ibv_modify_qp.
#include "perf/cli/xsrq_connection.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "perf/cli/failure.hpp"
#include "perf/cli/pingpong_device.hpp"

namespace verbatim::cli {
namespace {

constexpr std::uint64_t kReceiveId = 1, kSendId = 2;
constexpr std::uint8_t kRnrTimer = 12;    // 0.64 ms
constexpr std::uint8_t kAckTimeout = 14;  // 67 ms
constexpr std::uint8_t kRetries = 7;
constexpr std::uint8_t kRnrRetries = 7;  // for ever
constexpr const char kRecv[] = "recv", kSend[] = "send";

}  // namespace

XsrqConnection::XsrqConnection(const Device& device, ibv_pd* pd, const PingpongOptions& options,
                               const ibv_sge& message)
    : options_{options}, context_{device.context.get()}, message_{message} {
  common_.lid = device.port.lid;
  if (device.port.link_layer != IBV_LINK_LAYER_ETHERNET && common_.lid == 0) {
    fail("Couldn't get local LID: port %d of %s has none yet", options.ib_port, device.name());
  }
  if (options.gid_index >= 0 &&
      ibv_query_gid(context_, options.ib_port, options.gid_index, &common_.gid) != 0) {
    fail("can't read sgid of index %d: port %d of %s has %d (-g)", options.gid_index,
         options.ib_port, device.name(), device.port.gid_tbl_len);
  }
  create_queues(pd);
  for (std::uint32_t pair = 0; pair < options.queue_pairs; ++pair) create_pair(pd);
  for (std::uint32_t i = 0; i < options.rx_depth; ++i) post_receive();
  remotes_.resize(options.queue_pairs);
}

void XsrqConnection::create_queues(ibv_pd* pd) {
  if (options_.events) {
    channel_.reset(ibv_create_comp_channel(context_));
    if (!channel_) fail("Couldn't create completion channel: %s", std::strerror(errno));
  }
  cq_.reset(ibv_create_cq(context_, static_cast<int>(options_.rx_depth + options_.queue_pairs),
                          nullptr, channel_.get(), 0));
  if (!cq_) fail("Couldn't create recv CQ: %s", std::strerror(errno));
  if (channel_) {
    const int error = ibv_req_notify_cq(cq_.get(), 0);
    if (error != 0) fail("Couldn't request CQ notification: %s", std::strerror(error));
  }
  ibv_xrcd_init_attr domain = {};
  domain.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  domain.fd = -1;
  domain.oflags = O_CREAT;
  xrcd_.reset(ibv_open_xrcd(context_, &domain));
  if (!xrcd_) fail("Couldn't Open the XRC Domain %d: %s", errno, std::strerror(errno));
  ibv_srq_init_attr_ex attr = {};
  attr.attr.max_wr = options_.rx_depth;
  attr.attr.max_sge = 1;
  attr.comp_mask =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD;
  attr.srq_type = IBV_SRQT_XRC;
  attr.xrcd = xrcd_.get();
  attr.cq = cq_.get();
  attr.pd = pd;
  srq_.reset(ibv_create_srq_ex(context_, &attr));
  if (!srq_) fail("Couldn't create SRQ: %s", std::strerror(errno));
  if (ibv_get_srq_num(srq_.get(), &common_.srqn) != 0) fail("Couldn't get SRQ num");
}

void XsrqConnection::create_pair(ibv_pd* pd) {
  const std::size_t pair = targets_.size();
  ibv_qp_init_attr_ex attr = {};
  attr.qp_type = IBV_QPT_XRC_RECV;
  attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
  attr.xrcd = xrcd_.get();
  targets_.emplace_back(ibv_create_qp_ex(context_, &attr));
  if (!targets_.back()) {
    fail("Couldn't create recv QP[%zu] errno %d: %s", pair, errno, std::strerror(errno));
  }
  attr = {};
  attr.qp_type = IBV_QPT_XRC_SEND;
  attr.send_cq = cq_.get();
  attr.cap.max_send_wr = 1;
  attr.cap.max_send_sge = 1;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.pd = pd;
  initiators_.emplace_back(ibv_create_qp_ex(context_, &attr));
  if (!initiators_.back()) {
    fail("Couldn't create send QP[%zu] errno %d: %s", pair, errno, std::strerror(errno));
  }
  ibv_qp_attr init = {};
  init.qp_state = IBV_QPS_INIT;
  init.port_num = options_.ib_port;
  constexpr int kMask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  modify(targets_.back(), init, kMask, kRecv, pair, "INIT");
  modify(initiators_.back(), init, kMask, kSend, pair, "INIT");

  XsrqAddress local = common_;
  local.target = targets_.back()->qp_num;
  local.initiator = initiators_.back()->qp_num;
  // An old connection's late packets carry old PSNs: a new one starts anywhere.
  if (getrandom(&local.psn, sizeof(local.psn), 0) != sizeof(local.psn)) local.psn = 0x1d872b;
  local.psn &= 0xffffff;
  locals_.push_back(local);
}

void XsrqConnection::modify(const QpHandle& qp, ibv_qp_attr attr, int mask, const char* which,
                            std::size_t pair, const char* state) const {
  const int error = ibv_modify_qp(qp.get(), &attr, mask);
  if (error != 0) {
    fail("Failed to modify %s QP[%zu] to %s: %s", which, pair, state, std::strerror(error));
  }
}

void XsrqConnection::to_rtr(const QpHandle& qp, const XsrqAddress& remote, const char* which,
                            std::uint32_t pair) const {
  const bool receives = which == kRecv;
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RTR;
  attr.dest_qp_num = receives ? remote.initiator : remote.target;
  attr.path_mtu = options_.mtu;
  attr.rq_psn = remote.psn;
  attr.min_rnr_timer = kRnrTimer;
  attr.ah_attr = path_to(options_, remote.lid, remote.gid);
  int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (receives) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  modify(qp, attr, mask, which, pair, "RTR");
}

void XsrqConnection::connect(std::uint32_t pair, const XsrqAddress& remote) {
  to_rtr(targets_[pair], remote, kRecv, pair);
  to_rtr(initiators_[pair], remote, kSend, pair);
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = locals_[pair].psn;
  attr.timeout = kAckTimeout;
  modify(targets_[pair], attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN, kRecv, pair, "RTS");
  attr.retry_cnt = kRetries;
  attr.rnr_retry = kRnrRetries;
  modify(initiators_[pair], attr,
         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC,
         kSend, pair, "RTS");
  remotes_[pair] = remote;
}

void XsrqConnection::post_receive() {
  ibv_recv_wr receive = {};
  receive.wr_id = kReceiveId;
  receive.sg_list = &message_;
  receive.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_srq_recv(srq_.get(), &receive, &bad);
  if (error != 0) fail("Failed to post receive to SRQ: %s", std::strerror(error));
}

void XsrqConnection::send(std::uint32_t pair) {
  ibv_send_wr request = {};
  request.wr_id = kSendId;
  request.sg_list = &message_;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  request.qp_type.xrc.remote_srqn = remotes_[pair].srqn;
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(initiators_[pair].get(), &request, &bad);
  if (error != 0) fail("Couldn't post send: %s", std::strerror(error));
}

std::uint32_t XsrqConnection::pair_of(const ibv_wc& wc) const {
  const std::vector<QpHandle>& qps = wc.wr_id == kReceiveId ? targets_ : initiators_;
  for (std::uint32_t pair = 0; pair < qps.size(); ++pair) {
    if (qps[pair]->qp_num == wc.qp_num) return pair;
  }
  fail("Unable to find qp %x: a completion came for a queue pair that is none of ours", wc.qp_num);
}

int XsrqConnection::poll(std::span<XsrqCompletion> out) {
  constexpr int kBatch = 16;
  ibv_wc wc[kBatch];
  const int room = out.size() < kBatch ? static_cast<int>(out.size()) : kBatch;
  const int count = ibv_poll_cq(cq_.get(), room, wc);
  if (count < 0) fail("Error polling cq %d", count);
  for (int i = 0; i < count; ++i)
    out[static_cast<std::size_t>(i)] = {wc[i].wr_id == kReceiveId, wc[i].status, pair_of(wc[i])};
  return count;
}

bool XsrqConnection::sleep(long milliseconds, const StopSignals& stop) {
  if (!wait_for(channel_->fd, POLLIN, milliseconds, stop)) return false;
  ibv_cq* event_cq = nullptr;
  void* event_context = nullptr;
  if (ibv_get_cq_event(channel_.get(), &event_cq, &event_context) != 0) {
    fail("Failed to get cq_event: %s", std::strerror(errno));
  }
  ibv_ack_cq_events(event_cq, 1);
  if (event_cq != cq_.get()) fail("CQ event for unknown CQ %p", static_cast<void*>(event_cq));
  // Armed before the caller polls: what completes in between raises the next event.
  const int error = ibv_req_notify_cq(cq_.get(), 0);
  if (error != 0) fail("Couldn't request CQ notification: %s", std::strerror(error));
  return true;
}

void XsrqConnection::close() {
  for (std::size_t pair = 0; pair < targets_.size(); ++pair) {
    if (const int error = destroy(initiators_[pair]))
      fail("Couldn't destroy INI QP[%zu]: %s", pair, std::strerror(error));
    if (const int error = destroy(targets_[pair]))
      fail("Couldn't destroy TGT QP[%zu]: %s", pair, std::strerror(error));
  }
  if (const int error = destroy(srq_)) fail("Couldn't destroy SRQ: %s", std::strerror(error));
  if (const int error = destroy(xrcd_))
    fail("Couldn't close the XRC Domain: %s", std::strerror(error));
  if (const int error = destroy(cq_)) fail("Couldn't destroy recv CQ: %s", std::strerror(error));
  if (const int error = destroy(channel_)) {
    fail("Couldn't destroy completion channel: %s", std::strerror(error));
  }
}

}  // namespace verbatim::cli
