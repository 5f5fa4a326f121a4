// SPDX-License-Identifier: BSD-2-Clause
// What one side of an XRC pingpong plays with: one shared receive queue with its number, and for
// each other side a queue pair that sends and one that receives.
//
// Main thread. Life: construct (INIT) -> connect() each pair (RTS) -> send(), poll() -> close().
// Failures begin with the classic tool's words. The XRC domain is this process's own: unlike the
// classic tool's it needs no file, since nobody else opens it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>
#include <vector>

#include "perf/cli/pingpong_device.hpp"
#include "perf/cli/pingpong_options.hpp"
#include "perf/cli/stop_signals.hpp"
#include "perf/cli/xsrq_address.hpp"
#include "perf/support/verbs_handles.hpp"

namespace verbatim::cli {

using perf::ChannelHandle;
using perf::CqHandle;
using perf::QpHandle;
using perf::SrqHandle;
using perf::XrcdHandle;

struct XsrqCompletion {
  bool is_receive;
  ibv_wc_status status;
  std::uint32_t pair;
};

class XsrqConnection {
 public:
  /// `message` is what all send, and receive into.
  XsrqConnection(const Device& device, ibv_pd* pd, const PingpongOptions& options,
                 const ibv_sge& message);

  /// Of the pair: what its other side must know.
  XsrqAddress local(std::uint32_t pair) const { return locals_[pair]; }
  void connect(std::uint32_t pair, const XsrqAddress& remote);

  void post_receive();
  void send(std::uint32_t pair);
  int poll(std::span<XsrqCompletion> out);
  /// With -e: sleeps until something completes, at most `milliseconds`; false when they have
  /// passed. The queue is armed again: poll() until it is empty.
  bool sleep(long milliseconds, const StopSignals& stop);

  /// Destroys all; throws Failure when a verb refuses.
  void close();

 private:
  void create_queues(ibv_pd* pd);
  void create_pair(ibv_pd* pd);
  void modify(const QpHandle& qp, ibv_qp_attr attr, int mask, const char* which, std::size_t pair,
              const char* state) const;
  void to_rtr(const QpHandle& qp, const XsrqAddress& remote, const char* which,
              std::uint32_t pair) const;
  std::uint32_t pair_of(const ibv_wc& wc) const;

  const PingpongOptions& options_;
  ibv_context* context_;
  ibv_sge message_;
  XsrqAddress common_;  // what all our addresses have in common
  ChannelHandle channel_;
  CqHandle cq_;
  XrcdHandle xrcd_;
  SrqHandle srq_;
  std::vector<QpHandle> targets_, initiators_;
  std::vector<XsrqAddress> locals_, remotes_;
};

}  // namespace verbatim::cli
