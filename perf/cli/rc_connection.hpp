// SPDX-License-Identifier: BSD-2-Clause
// One RC queue pair with its completion queue, in whichever shape the options ask for.
//
// Main thread. Life: construct (INIT) -> post_receives() -> connect() (RTS) -> post_send(), poll()
// -> close(). Failures begin with the classic tool's words.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "perf/cli/pingpong_options.hpp"
#include "perf/cli/qp_address.hpp"
#include "perf/cli/stop_signals.hpp"
#include "perf/cli/verbs_handles.hpp"

namespace verbatim::cli {

struct Completion {
  std::uint64_t wr_id;
  ibv_wc_status status;
  std::uint64_t timestamp;  // 0 unless timestamps were asked for
};

class RcConnection {
 public:
  static constexpr std::uint64_t kReceiveId = 1;
  static constexpr std::uint64_t kSendId = 2;

  RcConnection(ibv_pd* pd, const PingpongOptions& options);

  std::uint32_t qpn() const { return qp_->qp_num; }
  /// To RTR and RTS.
  void connect(const QpAddress& local, const QpAddress& remote);

  /// How many of `count` receives were taken, after the line that says why not all.
  std::uint32_t post_receives(const ibv_sge& sge, std::uint32_t count);
  void post_send(const ibv_sge& sge);

  /// At most two completions, without waiting.
  int poll(Completion out[2]);
  /// With -e: sleeps until the completion queue has something, at most `milliseconds`; false when
  /// they have passed. The queue is armed again: poll() until it is empty.
  bool sleep(long milliseconds, const StopSignals& stop);

  /// Destroys all; throws Failure when a verb refuses.
  void close();

 private:
  void create_cq(ibv_context* context, int entries);
  void create_qp(ibv_pd* pd);
  void to_init();
  int poll_extended(Completion out[2]);
  ibv_cq* cq() const { return cq_.get(); }

  const PingpongOptions& options_;
  unsigned send_flags_ = IBV_SEND_SIGNALED;
  ChannelHandle channel_;
  CqHandle cq_;
  ibv_cq_ex* cq_extended_ = nullptr;  // the same object as cq_, when it has timestamps
  QpHandle qp_;
  ibv_qp_ex* qp_extended_ = nullptr;  // the same object as qp_, when it takes the new calls
};

}  // namespace verbatim::cli
