// SPDX-License-Identifier: BSD-2-Clause
#include "perf/support/clock.hpp"

namespace verbatim::perf {
namespace {

double calibrate() {
  const std::uint64_t start_ns = now_ns();
  const std::uint64_t start = ticks();
  std::uint64_t end_ns = start_ns;
  while (end_ns - start_ns < 10'000'000) end_ns = now_ns();
  const std::uint64_t end = ticks();
  return static_cast<double>(end_ns - start_ns) / static_cast<double>(end - start);
}

}  // namespace

double ns_per_tick() {
  static const double value = calibrate();
  return value;
}

}  // namespace verbatim::perf
