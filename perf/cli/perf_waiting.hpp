// SPDX-License-Identifier: BSD-2-Clause
// How a measuring loop waits: it polls on, giving the processor away now and then, or sleeps until
// an event comes; and it ends when the user, or the peer, has gone.
//
// Main thread, one object for a run. The loop says idle() after each look that has found nothing,
// and busy() after one that has. A Failure comes within a second of the peer's end, and
// kSilenceMs after the last sign of one that hangs.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "perf/cli/perf_exchange.hpp"
#include "perf/cli/stop_signals.hpp"

namespace verbatim::cli {

class PerfWaiting {
 public:
  /// With a channel, sleeps on the events of both queues. A round moves some messages of `size`.
  PerfWaiting(const PerfExchange& peer, const StopSignals& stop, ibv_comp_channel* channel,
              ibv_cq* send_cq, ibv_cq* recv_cq, std::uint64_t size)
      : peer_{peer},
        stop_{stop},
        channel_{channel},
        rounds_between_looks_{static_cast<std::uint32_t>(
            std::clamp<std::uint64_t>(kBytesBetweenLooks / (size + 1), 1, kRoundsBetweenLooks))},
        queues_{{{send_cq, false}, {recv_cq, false}}} {}

  void idle() {
    if (channel_ != nullptr) return sleep();
    if (++polls_ % kPollsBetweenLooks == 0) look_around();
  }
  /// After a look at memory, which takes a twentieth of one at a completion queue.
  void idle_on_memory() {
    if (++polls_ % kMemoryPollsBetweenLooks == 0) look_around();
  }
  void busy() {
    // Looks enter the kernel: only a wait that has become long may have any.
    polls_ = 0;
    since_.reset();
    if (++rounds_ % rounds_between_looks_ == 0) look_for_stop();
  }
  /// Throws when the program is to end.
  void look_for_stop() const;

 private:
  static constexpr std::uint32_t kPollsBetweenLooks = 2048;
  static constexpr std::uint32_t kMemoryPollsBetweenLooks = 32768;
  static constexpr std::uint32_t kRoundsBetweenLooks = 4096;
  static constexpr std::uint64_t kBytesBetweenLooks = 64u << 20;
  static constexpr long kSliceMs = 200;
  static constexpr long kDepartedMs = 200;
  static constexpr long kThroughMs = 2'000;
  static constexpr long kSilenceMs = 30'000;

  struct Armed {
    ibv_cq* cq;
    bool armed;
  };

  void sleep();
  void look_around();

  const PerfExchange& peer_;
  const StopSignals& stop_;
  ibv_comp_channel* channel_;
  std::uint32_t rounds_between_looks_;
  std::array<Armed, 2> queues_;
  std::uint32_t polls_ = 0;  // of this wait
  std::uint32_t rounds_ = 0;
  std::optional<std::chrono::steady_clock::time_point> since_;
};

}  // namespace verbatim::cli
