// SPDX-License-Identifier: BSD-2-Clause
// A line on a terminal that says how far a test is which takes longer than two seconds. A thread of
// its own, asleep but for twice a second, prints it, so that the measuring loop has nothing to do
// with it; where the standard error reaches no terminal there is no thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "perf/support/progress.hpp"

namespace verbatim::cli {

class PerfProgress {
 public:
  /// `duration_s` 0: nobody knows how long it will take.
  PerfProgress(std::string what, std::uint32_t duration_s);
  ~PerfProgress();
  PerfProgress(const PerfProgress&) = delete;
  PerfProgress& operator=(const PerfProgress&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  void show_until_over();

  std::string what_;
  std::uint32_t duration_s_;
  Clock::time_point start_ = Clock::now();
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::optional<std::thread> thread_;
};

}  // namespace verbatim::cli
