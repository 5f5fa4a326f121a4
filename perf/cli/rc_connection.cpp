// SPDX-License-Identifier: BSD-2-Clause
// See rc_connection.hpp. Attributes of the transitions: IBTA 11.2.5.2.
#include "perf/cli/rc_connection.hpp"

#include <poll.h>

#include <cerrno>
#include <cstring>

#include "perf/cli/failure.hpp"

namespace verbatim::cli {
namespace {

constexpr std::uint8_t kRnrTimer = 12;    // 0.64 ms
constexpr std::uint8_t kAckTimeout = 14;  // 67 ms
constexpr std::uint8_t kRetries = 7;
constexpr std::uint8_t kRnrRetries = 7;  // for ever

void modify(ibv_qp* qp, ibv_qp_attr* attr, int mask, const char* state) {
  const int error = ibv_modify_qp(qp, attr, mask);
  if (error != 0) fail("Failed to modify QP to %s: %s", state, std::strerror(error));
}

}  // namespace

RcConnection::RcConnection(ibv_pd* pd, const PingpongOptions& options) : options_{options} {
  if (options.events) {
    channel_.reset(ibv_create_comp_channel(pd->context));
    if (!channel_) fail("Couldn't create completion channel: %s", std::strerror(errno));
  }
  create_cq(pd->context, static_cast<int>(options.rx_depth) + 1);
  create_qp(pd);
  to_init();
  if (channel_) {
    const int error = ibv_req_notify_cq(cq(), 0);
    if (error != 0) fail("Couldn't request CQ notification: %s", std::strerror(error));
  }
}

void RcConnection::create_cq(ibv_context* context, int entries) {
  if (options_.timestamps) {
    ibv_cq_init_attr_ex attr = {};
    attr.cqe = static_cast<std::uint32_t>(entries);
    attr.channel = channel_.get();
    attr.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
    cq_extended_ = ibv_create_cq_ex(context, &attr);
    if (cq_extended_ != nullptr) cq_.reset(ibv_cq_ex_to_cq(cq_extended_));
  } else {
    cq_.reset(ibv_create_cq(context, entries, nullptr, channel_.get(), 0));
  }
  if (!cq_) {
    fail("Couldn't create CQ: %s%s", std::strerror(errno),
         options_.timestamps && errno == EOPNOTSUPP ? "; leave out -t" : "");
  }
}

void RcConnection::create_qp(ibv_pd* pd) {
  ibv_qp_init_attr_ex attr = {};
  attr.send_cq = attr.recv_cq = cq();
  attr.cap.max_send_wr = 1;
  attr.cap.max_recv_wr = options_.rx_depth;
  attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
  attr.qp_type = IBV_QPT_RC;
  if (options_.new_send) {
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.pd = pd;
    attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
    qp_.reset(ibv_create_qp_ex(pd->context, &attr));
  } else {
    ibv_qp_init_attr plain = {};
    plain.send_cq = attr.send_cq;
    plain.recv_cq = attr.recv_cq;
    plain.cap = attr.cap;
    plain.qp_type = attr.qp_type;
    qp_.reset(ibv_create_qp(pd, &plain));
  }
  if (!qp_) {
    fail("Couldn't create QP: %s%s", std::strerror(errno),
         options_.new_send && errno == EOPNOTSUPP ? "; leave out -N" : "");
  }
  if (options_.new_send) {
    qp_extended_ = ibv_qp_to_qp_ex(qp_.get());
    if (qp_extended_ == nullptr) fail("Couldn't create QP: it lacks the new calls; leave out -N");
  }
  // No inline room was asked for; what the device gives all the same saves it a fetch.
  ibv_qp_attr current = {};
  ibv_qp_init_attr given = {};
  if (ibv_query_qp(qp_.get(), &current, IBV_QP_CAP, &given) == 0 &&
      given.cap.max_inline_data >= options_.size && !options_.device_memory) {
    send_flags_ |= IBV_SEND_INLINE;
  }
}

void RcConnection::to_init() {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = options_.ib_port;
  modify(qp_.get(), &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
         "INIT");
}

void RcConnection::connect(const QpAddress& local, const QpAddress& remote) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = options_.mtu;
  attr.dest_qp_num = remote.qpn;
  attr.rq_psn = remote.psn;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = kRnrTimer;
  attr.ah_attr.dlid = remote.lid;
  attr.ah_attr.sl = options_.service_level;
  attr.ah_attr.port_num = options_.ib_port;
  if (remote.gid.global.interface_id != 0) {
    if (options_.gid_index < 0) {
      fail("Couldn't connect to remote QP: the other side runs with -g, so this one must too");
    }
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.dgid = remote.gid;
    attr.ah_attr.grh.hop_limit = 1;
    attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(options_.gid_index);
  }
  modify(qp_.get(), &attr,
         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
         "RTR");

  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = local.psn;
  attr.timeout = kAckTimeout;
  attr.retry_cnt = kRetries;
  attr.rnr_retry = kRnrRetries;
  attr.max_rd_atomic = 1;
  modify(qp_.get(), &attr,
         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
             IBV_QP_MAX_QP_RD_ATOMIC,
         "RTS");
}

std::uint32_t RcConnection::post_receives(const ibv_sge& sge, std::uint32_t count) {
  ibv_sge list = sge;
  ibv_recv_wr request = {};
  request.wr_id = kReceiveId;
  request.sg_list = &list;
  request.num_sge = 1;
  std::uint32_t posted = 0;
  ibv_recv_wr* bad = nullptr;
  while (posted < count && ibv_post_recv(qp_.get(), &request, &bad) == 0) ++posted;
  return posted;
}

void RcConnection::post_send(const ibv_sge& sge) {
  int error;
  if (qp_extended_ != nullptr) {
    ibv_wr_start(qp_extended_);
    qp_extended_->wr_id = kSendId;
    qp_extended_->wr_flags = send_flags_;
    ibv_wr_send(qp_extended_);
    if ((send_flags_ & IBV_SEND_INLINE) != 0) {
      ibv_wr_set_inline_data(qp_extended_, reinterpret_cast<void*>(sge.addr), sge.length);
    } else {
      ibv_wr_set_sge(qp_extended_, sge.lkey, sge.addr, sge.length);
    }
    error = ibv_wr_complete(qp_extended_);
  } else {
    ibv_sge list = sge;
    ibv_send_wr request = {};
    request.wr_id = kSendId;
    request.sg_list = &list;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = send_flags_;
    ibv_send_wr* bad = nullptr;
    error = ibv_post_send(qp_.get(), &request, &bad);
  }
  if (error != 0) fail("Couldn't post send: %s", std::strerror(error));
}

int RcConnection::poll(Completion out[2]) {
  if (cq_extended_ != nullptr) return poll_extended(out);
  ibv_wc wc[2];
  const int count = ibv_poll_cq(cq(), 2, wc);
  if (count < 0) fail("poll CQ failed %d", count);
  for (int i = 0; i < count; ++i) out[i] = {wc[i].wr_id, wc[i].status, 0};
  return count;
}

int RcConnection::poll_extended(Completion out[2]) {
  ibv_poll_cq_attr attr = {};
  int error = ibv_start_poll(cq_extended_, &attr);
  if (error == ENOENT) return 0;
  if (error != 0) fail("poll CQ failed %d", error);
  int count = 0;
  do {
    const bool good = cq_extended_->status == IBV_WC_SUCCESS;
    out[count++] = {cq_extended_->wr_id, cq_extended_->status,
                    good ? ibv_wc_read_completion_ts(cq_extended_) : 0};
    error = count < 2 ? ibv_next_poll(cq_extended_) : ENOENT;
  } while (error == 0);
  ibv_end_poll(cq_extended_);
  if (error != ENOENT) fail("poll CQ failed %d", error);
  return count;
}

bool RcConnection::sleep(long milliseconds, const StopSignals& stop) {
  if (!wait_for(channel_->fd, POLLIN, milliseconds, stop)) return false;
  ibv_cq* event_cq = nullptr;
  void* event_context = nullptr;
  if (ibv_get_cq_event(channel_.get(), &event_cq, &event_context) != 0) {
    fail("Failed to get cq_event: %s", std::strerror(errno));
  }
  // At once, not in batches: a CQ with an unacknowledged event cannot be destroyed, nor unwound.
  ibv_ack_cq_events(event_cq, 1);
  if (event_cq != cq()) fail("CQ event for unknown CQ %p", static_cast<void*>(event_cq));
  // Armed before the caller polls: what completes in between raises the next event.
  const int error = ibv_req_notify_cq(cq(), 0);
  if (error != 0) fail("Couldn't request CQ notification: %s", std::strerror(error));
  return true;
}

void RcConnection::close() {
  if (const int error = destroy(qp_)) fail("Couldn't destroy QP: %s", std::strerror(error));
  if (const int error = destroy(cq_)) fail("Couldn't destroy CQ: %s", std::strerror(error));
  if (const int error = destroy(channel_)) {
    fail("Couldn't destroy completion channel: %s", std::strerror(error));
  }
}

}  // namespace verbatim::cli
