// SPDX-License-Identifier: BSD-2-Clause
// Cuts a test into some twenty blocks while it runs, by messages or, of -D, by time: one comparison
// for each look at the clock that the test takes anyway. One thread; does not allocate after its
// start.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "perf/cli/perf_figures.hpp"

namespace verbatim::cli {

class PerfBlocks {
 public:
  static constexpr std::uint64_t kBlocks = 20;

  PerfBlocks() { marks_.reserve(2 * kBlocks + 2); }
  /// The clock has started. `messages` 0: cut by time, from `now` to `end`.
  void start(std::uint64_t now, std::uint64_t messages, std::uint64_t end) {
    by_time_ = messages == 0;
    step_ = std::max<std::uint64_t>(1, (by_time_ ? end - now : messages) / kBlocks);
    next_ = by_time_ ? now + step_ : step_;
    marks_.push_back({0, now});
  }
  bool started() const { return !marks_.empty(); }
  /// So many messages were done at `now`.
  void add(std::uint64_t done, std::uint64_t now) {
    if ((by_time_ ? now : done) < next_) [[likely]]
      return;
    if (marks_.size() == marks_.capacity()) return;
    marks_.push_back({done, now});
    next_ = (by_time_ ? now : done) + step_;
  }
  /// A test that was stopped ends in the middle of a block.
  void stop(std::uint64_t done, std::uint64_t now) {
    if (started() && done > marks_.back().done) marks_.push_back({done, now});
  }
  std::vector<PerfCompletion> take() { return std::move(marks_); }

 private:
  bool by_time_ = false;
  std::uint64_t step_ = 0;
  std::uint64_t next_ = UINT64_MAX;
  std::vector<PerfCompletion> marks_;
};

}  // namespace verbatim::cli
