// SPDX-License-Identifier: BSD-2-Clause
// When a test of --rate_limit may post: bursts at even distances, whose rate all queue pairs share.
// One thread; times are in ticks of perf::ticks().
#pragma once

#include <algorithm>
#include <cstdint>

#include "perf/cli/perf_options.hpp"
#include "perf/support/clock.hpp"

namespace verbatim::cli {

/// Messages of `size` bytes in a second.
inline double limited_messages(const PerfOptions& options, std::uint32_t size) {
  switch (options.rate_unit) {
    case PerfRateUnit::kMebibytes:
      return *options.rate * 1048576 / size;
    case PerfRateUnit::kGigabits:
      return *options.rate * 125e6 / size;
    case PerfRateUnit::kMessages:
      break;
  }
  return *options.rate;
}

class PerfPacer {
 public:
  PerfPacer(const PerfOptions& options, std::uint32_t size, double ns_per_tick) {
    if (!options.rate) return;
    burst_ = options.burst;
    gap_ = std::max(1.0, options.burst / limited_messages(options, size) * 1e9 / ns_per_tick);
  }

  /// Whether a list may be posted at `now`.
  bool may_post(std::uint64_t now) {
    if (gap_ == 0 || sent_ < burst_) return true;
    const auto time = static_cast<double>(now);
    if (time < next_) return false;
    // Lateness within a gap is made up for; what is later than that is lost, else a pause of the
    // peer would be followed by no pauses at all.
    next_ = next_ < time - gap_ ? time + gap_ : next_ + gap_;
    // What a list was more than the burst counts for the next one.
    sent_ -= burst_;
    return sent_ < burst_;
  }
  void posted(std::uint32_t messages, std::uint64_t now) {
    if (gap_ == 0) return;
    if (next_ == 0) next_ = static_cast<double>(now) + gap_;
    sent_ += messages;
  }

 private:
  double gap_ = 0;  // 0: no limit
  double next_ = 0;
  std::uint64_t burst_ = 0;
  std::uint64_t sent_ = 0;
};

}  // namespace verbatim::cli
