// SPDX-License-Identifier: BSD-2-Clause
// What the transports of a pingpong differ in: the kind and number of their queue pairs, and how
// these get to a state in which they send.
//
// Attributes of the transitions: IBTA 11.2.5.2. Q_Key of UD: that of the classic tool, which must
// be the same at the other end.
#include <cerrno>
#include <cstring>

#include "perf/cli/failure.hpp"
#include "perf/cli/pingpong_connection.hpp"
#include "perf/support/verbs_handles.hpp"

namespace verbatim::cli {
namespace {

using perf::AhHandle;

constexpr std::uint8_t kRnrTimer = 12;    // 0.64 ms
constexpr std::uint8_t kAckTimeout = 14;  // 67 ms
constexpr std::uint8_t kRetries = 7;
constexpr std::uint8_t kRnrRetries = 7;  // for ever
constexpr std::uint32_t kQkey = 0x11111111;

/// One queue pair, or with `shared` several that share one receive queue.
class RcConnection final : public PingpongConnection {
 public:
  RcConnection(ibv_pd* pd, const PingpongOptions& options, bool shared)
      : PingpongConnection(pd, options) {
    if (shared) create_srq(pd);
    create_qps(pd, IBV_QPT_RC);
    to_init({}, IBV_QP_ACCESS_FLAGS);
  }

  void connect(std::uint32_t pair, const QpAddress& local, const QpAddress& remote) override {
    ibv_qp_attr attr = receiving_from(remote);
    attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer = kRnrTimer;
    modify(pair, attr, kReceivingFrom | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER, "RTR");
    attr = {};
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = local.psn;
    attr.timeout = kAckTimeout;
    attr.retry_cnt = kRetries;
    attr.rnr_retry = kRnrRetries;
    attr.max_rd_atomic = 1;
    modify(pair, attr,
           IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
               IBV_QP_MAX_QP_RD_ATOMIC,
           "RTS");
  }
};

class UcConnection final : public PingpongConnection {
 public:
  UcConnection(ibv_pd* pd, const PingpongOptions& options) : PingpongConnection(pd, options) {
    create_qps(pd, IBV_QPT_UC);
    to_init({}, IBV_QP_ACCESS_FLAGS);
  }

  void connect(std::uint32_t pair, const QpAddress& local, const QpAddress& remote) override {
    modify(pair, receiving_from(remote), kReceivingFrom, "RTR");
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = local.psn;
    modify(pair, attr, IBV_QP_STATE | IBV_QP_SQ_PSN, "RTS");
  }
};

class UdConnection final : public PingpongConnection {
 public:
  UdConnection(ibv_pd* pd, const PingpongOptions& options)
      : PingpongConnection(pd, options), pd_{pd} {
    create_qps(pd, IBV_QPT_UD);
    ibv_qp_attr attr = {};
    attr.qkey = kQkey;
    to_init(attr, IBV_QP_QKEY);
  }

  /// There is no connection: the queue pair learns nothing of `remote`, each request names it.
  void connect(std::uint32_t pair, const QpAddress& local, const QpAddress& remote) override {
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_RTR;
    modify(pair, attr, IBV_QP_STATE, "RTR");
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = local.psn;
    modify(pair, attr, IBV_QP_STATE | IBV_QP_SQ_PSN, "RTS");
    ibv_ah_attr path = path_to(remote);
    ah_.reset(ibv_create_ah(pd_, &path));
    if (!ah_) fail("Failed to create AH: %s", std::strerror(errno));
    request(pair).wr.ud.ah = ah_.get();
    request(pair).wr.ud.remote_qpn = remote.qpn;
    request(pair).wr.ud.remote_qkey = kQkey;
  }

  void close() override {
    PingpongConnection::close();
    if (const int error = destroy(ah_)) fail("Couldn't destroy AH: %s", std::strerror(error));
  }

 private:
  ibv_pd* pd_;
  AhHandle ah_;
};

}  // namespace

std::unique_ptr<PingpongConnection> make_connection(ibv_pd* pd, const PingpongOptions& options) {
  switch (options.transport) {
    case Transport::kUc:
      return std::make_unique<UcConnection>(pd, options);
    case Transport::kUd:
      return std::make_unique<UdConnection>(pd, options);
    case Transport::kSrq:
      return std::make_unique<RcConnection>(pd, options, true);
    case Transport::kRc:
    case Transport::kXsrq:  // a game of its own (pingpong_xsrq.cpp)
      break;
  }
  return std::make_unique<RcConnection>(pd, options, false);
}

}  // namespace verbatim::cli
