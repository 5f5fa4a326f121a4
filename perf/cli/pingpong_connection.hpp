// SPDX-License-Identifier: BSD-2-Clause
// What one side of a pingpong plays with: its queue pairs, the completion queue and the receives
// that they share. What differs between transports is in a class for each, made by
// make_connection().
//
// Main thread. Life: construct (INIT) -> post_receives() -> connect() each queue pair (RTS) ->
// post_send(), poll() -> close(). Failures begin with the classic tools' words.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "perf/cli/pingpong_device.hpp"
#include "perf/cli/pingpong_options.hpp"
#include "perf/cli/qp_address.hpp"
#include "perf/cli/stop_signals.hpp"
#include "perf/support/verbs_handles.hpp"

namespace verbatim::cli {

using perf::ChannelHandle;
using perf::CqHandle;
using perf::QpHandle;
using perf::SrqHandle;

struct Completion {
  std::uint64_t wr_id;
  ibv_wc_status status;
  std::uint32_t pair;       // which queue pair's, from 0
  std::uint64_t timestamp;  // 0 unless timestamps were asked for
};

class PingpongConnection {
 public:
  static constexpr std::uint64_t kReceiveId = 1;
  static constexpr std::uint64_t kSendId = 2;

  virtual ~PingpongConnection() = default;
  PingpongConnection(const PingpongConnection&) = delete;
  PingpongConnection& operator=(const PingpongConnection&) = delete;

  std::uint32_t qpn(std::uint32_t pair) const { return qps_[pair]->qp_num; }
  /// To RTR and RTS.
  virtual void connect(std::uint32_t pair, const QpAddress& local, const QpAddress& remote) = 0;

  /// How many of `count` receives were taken.
  std::uint32_t post_receives(const ibv_sge& sge, std::uint32_t count);
  void post_send(std::uint32_t pair, const ibv_sge& sge);

  /// Takes what is there, without waiting.
  int poll(std::span<Completion> out);
  /// With -e: sleeps until the completion queue has something, at most `milliseconds`; false when
  /// they have passed. The queue is armed again: poll() until it is empty.
  bool sleep(long milliseconds, const StopSignals& stop);

  /// Destroys all; throws Failure when a verb refuses.
  virtual void close();

 protected:
  /// The completion queue. What the queue pairs need is made by the heirs' constructors.
  PingpongConnection(ibv_pd* pd, const PingpongOptions& options);

  void create_srq(ibv_pd* pd);
  void create_qps(ibv_pd* pd, ibv_qp_type type);
  /// All queue pairs to INIT, by `attr` with the device's port filled in.
  void to_init(ibv_qp_attr attr, int mask);
  void modify(std::uint32_t pair, ibv_qp_attr attr, int mask, const char* state);

  ibv_ah_attr path_to(const QpAddress& remote) const {
    return cli::path_to(options_, remote.lid, remote.gid);
  }
  /// What both connected transports say to get to RTR: STATE, AV, PATH_MTU, DEST_QPN, RQ_PSN.
  ibv_qp_attr receiving_from(const QpAddress& remote) const;
  static constexpr int kReceivingFrom =
      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

  ibv_qp* qp(std::uint32_t pair) const { return qps_[pair].get(); }
  /// What is sent on that queue pair each time, but for its data.
  ibv_send_wr& request(std::uint32_t pair) { return requests_[pair]; }

 private:
  void create_cq(ibv_context* context, int entries);
  QpHandle create_qp(ibv_pd* pd, ibv_qp_type type);
  int poll_extended(std::span<Completion> out);
  std::uint32_t pair_of(std::uint32_t qpn) const;
  std::string name_of(std::uint32_t pair) const;
  ibv_cq* cq() const { return cq_.get(); }

  const PingpongOptions& options_;
  ChannelHandle channel_;
  CqHandle cq_;
  ibv_cq_ex* cq_extended_ = nullptr;  // the same object as cq_, when it has timestamps
  SrqHandle srq_;                     // null: the (one) queue pair has its own receives
  std::vector<QpHandle> qps_;
  std::vector<ibv_send_wr> requests_;
  ibv_qp_ex* qp_extended_ = nullptr;  // the same object as qps_[0], when it takes the new calls
};

/// The connection that the options ask for.
std::unique_ptr<PingpongConnection> make_connection(ibv_pd* pd, const PingpongOptions& options);

}  // namespace verbatim::cli
