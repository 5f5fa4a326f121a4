// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/pingpong_connection.hpp"

#include <poll.h>

#include <cerrno>
#include <cstring>

#include "perf/cli/failure.hpp"

namespace verbatim::cli {

PingpongConnection::PingpongConnection(ibv_pd* pd, const PingpongOptions& options)
    : options_{options} {
  if (options.events) {
    channel_.reset(ibv_create_comp_channel(pd->context));
    if (!channel_) fail("Couldn't create completion channel: %s", std::strerror(errno));
  }
  create_cq(pd->context, static_cast<int>(options.rx_depth + options.queue_pairs));
  if (channel_) {
    const int error = ibv_req_notify_cq(cq(), 0);
    if (error != 0) fail("Couldn't request CQ notification: %s", std::strerror(error));
  }
}

void PingpongConnection::create_cq(ibv_context* context, int entries) {
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

void PingpongConnection::create_srq(ibv_pd* pd) {
  ibv_srq_init_attr attr = {};
  attr.attr.max_wr = options_.rx_depth;
  attr.attr.max_sge = 1;
  srq_.reset(ibv_create_srq(pd, &attr));
  if (!srq_) fail("Couldn't create SRQ: %s", std::strerror(errno));
}

void PingpongConnection::create_qps(ibv_pd* pd, ibv_qp_type type) {
  ibv_send_wr request = {};
  request.wr_id = kSendId;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  requests_.assign(options_.queue_pairs, request);
  for (std::uint32_t pair = 0; pair < options_.queue_pairs; ++pair) {
    qps_.push_back(create_qp(pd, type));
    // No inline room was asked for; what the device gives all the same saves it a fetch.
    ibv_qp_attr current = {};
    ibv_qp_init_attr given = {};
    if (ibv_query_qp(qp(pair), &current, IBV_QP_CAP, &given) == 0 &&
        given.cap.max_inline_data >= options_.size && !options_.device_memory) {
      requests_[pair].send_flags |= IBV_SEND_INLINE;
    }
  }
}

QpHandle PingpongConnection::create_qp(ibv_pd* pd, ibv_qp_type type) {
  ibv_qp_init_attr plain = {};
  plain.send_cq = plain.recv_cq = cq();
  plain.srq = srq_.get();
  plain.cap.max_send_wr = 1;
  plain.cap.max_send_sge = 1;
  if (!srq_) {
    plain.cap.max_recv_wr = options_.rx_depth;
    plain.cap.max_recv_sge = 1;
  }
  plain.qp_type = type;
  QpHandle made;
  if (options_.new_send) {
    ibv_qp_init_attr_ex attr = {};
    attr.send_cq = attr.recv_cq = cq();
    attr.cap = plain.cap;
    attr.qp_type = type;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.pd = pd;
    attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
    made.reset(ibv_create_qp_ex(pd->context, &attr));
  } else {
    made.reset(ibv_create_qp(pd, &plain));
  }
  const auto pair = static_cast<std::uint32_t>(qps_.size());
  if (!made) {
    fail("Couldn't create %s: %s%s", name_of(pair).c_str(), std::strerror(errno),
         options_.new_send && errno == EOPNOTSUPP ? "; leave out -N" : "");
  }
  if (options_.new_send) {
    qp_extended_ = ibv_qp_to_qp_ex(made.get());
    if (qp_extended_ == nullptr) fail("Couldn't create QP: it lacks the new calls; leave out -N");
  }
  return made;
}

void PingpongConnection::to_init(ibv_qp_attr attr, int mask) {
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = options_.ib_port;
  mask |= IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  for (std::uint32_t pair = 0; pair < qps_.size(); ++pair) modify(pair, attr, mask, "INIT");
}

void PingpongConnection::modify(std::uint32_t pair, ibv_qp_attr attr, int mask, const char* state) {
  const int error = ibv_modify_qp(qp(pair), &attr, mask);
  if (error != 0) {
    fail("Failed to modify %s to %s: %s", name_of(pair).c_str(), state, std::strerror(error));
  }
}

ibv_qp_attr PingpongConnection::receiving_from(const QpAddress& remote) const {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = options_.mtu;
  attr.dest_qp_num = remote.qpn;
  attr.rq_psn = remote.psn;
  attr.ah_attr = path_to(remote);
  return attr;
}

std::uint32_t PingpongConnection::post_receives(const ibv_sge& sge, std::uint32_t count) {
  ibv_sge list = sge;
  ibv_recv_wr receive = {};
  receive.wr_id = kReceiveId;
  receive.sg_list = &list;
  receive.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  const auto post = [&] {
    return srq_ ? ibv_post_srq_recv(srq_.get(), &receive, &bad)
                : ibv_post_recv(qps_.front().get(), &receive, &bad);
  };
  std::uint32_t posted = 0;
  while (posted < count && post() == 0) ++posted;
  return posted;
}

void PingpongConnection::post_send(std::uint32_t pair, const ibv_sge& sge) {
  const ibv_send_wr& request = requests_[pair];
  int error;
  if (qp_extended_ != nullptr) {
    ibv_wr_start(qp_extended_);
    qp_extended_->wr_id = request.wr_id;
    qp_extended_->wr_flags = request.send_flags;
    ibv_wr_send(qp_extended_);
    if ((request.send_flags & IBV_SEND_INLINE) != 0) {
      ibv_wr_set_inline_data(qp_extended_, reinterpret_cast<void*>(sge.addr), sge.length);
    } else {
      ibv_wr_set_sge(qp_extended_, sge.lkey, sge.addr, sge.length);
    }
    error = ibv_wr_complete(qp_extended_);
  } else {
    ibv_sge list = sge;
    ibv_send_wr send = request;
    send.sg_list = &list;
    ibv_send_wr* bad = nullptr;
    error = ibv_post_send(qp(pair), &send, &bad);
  }
  if (error != 0) fail("Couldn't post send: %s", std::strerror(error));
}

int PingpongConnection::poll(std::span<Completion> out) {
  if (cq_extended_ != nullptr) return poll_extended(out);
  constexpr int kBatch = 16;
  ibv_wc wc[kBatch];
  const int room = out.size() < kBatch ? static_cast<int>(out.size()) : kBatch;
  const int count = ibv_poll_cq(cq(), room, wc);
  if (count < 0) fail("poll CQ failed %d", count);
  for (int i = 0; i < count; ++i) {
    out[static_cast<std::size_t>(i)] = {wc[i].wr_id, wc[i].status, pair_of(wc[i].qp_num), 0};
  }
  return count;
}

int PingpongConnection::poll_extended(std::span<Completion> out) {
  ibv_poll_cq_attr attr = {};
  int error = ibv_start_poll(cq_extended_, &attr);
  if (error == ENOENT) return 0;
  if (error != 0) fail("poll CQ failed %d", error);
  std::size_t count = 0;
  do {
    const bool good = cq_extended_->status == IBV_WC_SUCCESS;
    out[count++] = {cq_extended_->wr_id, cq_extended_->status, 0,
                    good ? ibv_wc_read_completion_ts(cq_extended_) : 0};
    error = count < out.size() ? ibv_next_poll(cq_extended_) : ENOENT;
  } while (error == 0);
  ibv_end_poll(cq_extended_);
  if (error != ENOENT) fail("poll CQ failed %d", error);
  return static_cast<int>(count);
}

std::uint32_t PingpongConnection::pair_of(std::uint32_t qpn) const {
  if (qps_.size() == 1) return 0;
  for (std::uint32_t pair = 0; pair < qps_.size(); ++pair) {
    if (qps_[pair]->qp_num == qpn) return pair;
  }
  fail("Couldn't find QPN %06x: a completion came for a queue pair that is none of ours", qpn);
}

/// "QP", or "QP[3]" where there may be several: as the classic tools call it.
std::string PingpongConnection::name_of(std::uint32_t pair) const {
  return srq_ ? "QP[" + std::to_string(pair) + "]" : "QP";
}

bool PingpongConnection::sleep(long milliseconds, const StopSignals& stop) {
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

void PingpongConnection::close() {
  for (std::uint32_t pair = 0; pair < qps_.size(); ++pair) {
    if (const int error = destroy(qps_[pair])) {
      fail("Couldn't destroy %s: %s", name_of(pair).c_str(), std::strerror(error));
    }
  }
  if (const int error = destroy(srq_)) fail("Couldn't destroy SRQ: %s", std::strerror(error));
  if (const int error = destroy(cq_)) fail("Couldn't destroy CQ: %s", std::strerror(error));
  if (const int error = destroy(channel_)) {
    fail("Couldn't destroy completion channel: %s", std::strerror(error));
  }
}

}  // namespace verbatim::cli
