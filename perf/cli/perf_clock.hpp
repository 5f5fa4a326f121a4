// SPDX-License-Identifier: BSD-2-Clause
// When a test of -D begins to count, stops counting, and ends. One thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "perf/cli/perf_options.hpp"
#include "perf/support/clock.hpp"

namespace verbatim::cli {

class PerfClock {
 public:
  explicit PerfClock(const PerfOptions& options) : options_{options} {}

  bool started() const { return start_ != 0; }
  void start() {
    const double tick = perf::ns_per_tick();
    const auto ticks = [tick](std::uint64_t seconds) {
      return static_cast<std::uint64_t>(static_cast<double>(seconds) * 1e9 / tick);
    };
    start_ = perf::ticks();
    first_ = start_ + ticks(options_.margin);
    last_ = start_ + ticks(options_.duration - options_.margin);
    end_ = start_ + ticks(options_.duration);
    if (options_.endless) last_ = end_ = UINT64_MAX;
  }

  bool over(std::uint64_t now) const { return started() && now >= end_; }
  bool counts(std::uint64_t now) const { return started() && now >= first_ && now < last_; }
  std::uint64_t first() const { return first_; }
  std::uint64_t last() const { return last_; }
  /// Of a test that was stopped at `now`.
  std::uint64_t counted_ticks_till(std::uint64_t now) const {
    return now <= first_ ? 0 : std::min(now, last_) - first_;
  }

 private:
  const PerfOptions& options_;
  std::uint64_t start_ = 0, first_ = 0, last_ = 0, end_ = 0;
};

}  // namespace verbatim::cli
