// SPDX-License-Identifier: BSD-2-Clause
// A computation of a known length, for a nonblocking collective to hide behind: a fixed amount of
// work, so that what a collective takes from the processor meanwhile makes it longer. One thread.
#pragma once

#include <cstdint>

namespace verbatim::cli {

class CollWork {
 public:
  /// Finds out how much this processor does in a nanosecond; takes some milliseconds.
  CollWork();

  [[nodiscard]] std::uint64_t units_in(double ns) const;
  /// Does so many units.
  void run(std::uint64_t units);

 private:
  double units_of_ns_ = 1;
  double values_[4] = {1, 2, 3, 4};
};

}  // namespace verbatim::cli
