// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_coll_work.hpp"

#include <algorithm>

#include "perf/support/clock.hpp"

namespace verbatim::cli {

CollWork::CollWork() {
  constexpr std::uint64_t kUnits = 200'000;
  constexpr int kTimes = 9;
  double best = 0;
  // Who loses the processor meanwhile looks slow: the fastest one says what it can.
  for (int i = 0; i < kTimes; ++i) {
    const std::uint64_t start = perf::now_ns();
    run(kUnits);
    const auto took = static_cast<double>(std::max<std::uint64_t>(1, perf::now_ns() - start));
    best = std::max(best, static_cast<double>(kUnits) / took);
  }
  units_of_ns_ = best;
}

std::uint64_t CollWork::units_in(double ns) const {
  return static_cast<std::uint64_t>(std::max(1.0, ns * units_of_ns_));
}

void CollWork::run(std::uint64_t units) {
  double a = values_[0], b = values_[1], c = values_[2], d = values_[3];
  for (std::uint64_t i = 0; i < units; ++i) {
    a = a * 0.999999 + 1e-6;
    b = b * 0.999998 + 1e-6;
    c = c * 0.999997 + 1e-6;
    d = d * 0.999996 + 1e-6;
  }
  values_[0] = a, values_[1] = b, values_[2] = c, values_[3] = d;
}

}  // namespace verbatim::cli
