// SPDX-License-Identifier: BSD-2-Clause
// The throwing to and fro itself: one message in flight on each queue pair, counted until both
// sides have had enough.
//
// Main thread. Life: post_receives() -> the connection is made -> play() -> report(). A peer that
// falls silent ends in a Failure within kSilenceMs, or kDepartedMs when it has left the TCP
// conversation too: no transport alone tells a receiver that its peer is gone. Ctrl-C ends in
// Stopped.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "perf/cli/message_memory.hpp"
#include "perf/cli/pingpong_connection.hpp"
#include "perf/cli/pingpong_options.hpp"
#include "perf/cli/stop_signals.hpp"
#include "perf/cli/tcp_exchange.hpp"

namespace verbatim::cli {

/// Ticks of the device's clock between one receive completion and the next.
struct ReceiveGaps {
  std::uint64_t mask;  // the clock's width: differences are taken modulo it
  std::uint64_t last = 0;
  std::uint64_t longest = 0;
  std::uint64_t shortest = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t total = 0;
  std::uint64_t count = 0;
  bool started = false;

  void add(std::uint64_t now);
};

class PingpongGame {
 public:
  static constexpr long kSilenceMs = 30'000;
  static constexpr long kDepartedMs = 5'000;

  /// `clock_mask`: completion_timestamp_mask of the device.
  PingpongGame(const PingpongOptions& options, PingpongConnection* connection,
               const MessageMemory& memory, std::uint64_t clock_mask, const StopSignals& stop)
      : options_{options},
        connection_{*connection},
        send_from_{memory.send_from()},
        receive_into_{memory.receive_into()},
        stop_{stop},
        gaps_{.mask = clock_mask},
        awaited_(options.queue_pairs) {}

  /// Fills the receive queue.
  void post_receives();
  /// `first`: ours is the first throw of each queue pair, as a client's is.
  void play(bool first, const Conversation& peer);
  void report(double microseconds) const;

 private:
  void send(std::uint32_t pair);
  void wait_by_event();
  void wait_by_polling();
  bool finished() const;
  /// Takes what there is; false when there was nothing, or nothing more is wanted.
  bool take_completions();
  void take(const Completion& done);
  /// After `silent` milliseconds without a message: throws when that was too long.
  void judge_silence(long silent) const;

  const PingpongOptions& options_;
  PingpongConnection& connection_;
  const ibv_sge send_from_;
  const ibv_sge receive_into_;
  const StopSignals& stop_;
  const Conversation* peer_ = nullptr;
  ReceiveGaps gaps_;
  std::uint32_t receives_ = 0;  // posted and not yet consumed
  std::uint32_t sent_ = 0;
  std::uint32_t received_ = 0;
  std::vector<std::uint64_t> awaited_;  // per queue pair: the wr_ids that its next send waits for
};

}  // namespace verbatim::cli
