// SPDX-License-Identifier: BSD-2-Clause
// A point in time after which waiting is over, in the milliseconds that poll() counts.
#pragma once

#include <algorithm>
#include <chrono>

namespace verbatim::cli {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  /// `milliseconds` from now; -1: never.
  explicit Deadline(long milliseconds)
      : never_{milliseconds < 0}, end_{Clock::now() + std::chrono::milliseconds(milliseconds)} {}

  /// What is left for poll(): -1 when there is no end, else rounded up, so that 0 means over.
  int left() const {
    if (never_) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left, 0, 1'000'000'000));
  }
  bool over() const { return left() == 0; }

 private:
  bool never_;
  Clock::time_point end_;
};

}  // namespace verbatim::cli
