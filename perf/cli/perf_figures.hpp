// SPDX-License-Identifier: BSD-2-Clause
// What the stamps of a test say: latencies in one number each, and bandwidths with their peak. Any
// thread; pure. Times are in ticks of perf::ticks().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace verbatim::cli {

struct LatencyFigures {
  double least = 0, most = 0, typical = 0, average = 0, deviation = 0;
  double percentile_99 = 0, percentile_99_9 = 0;
};

/// Of sorted samples, at least one; none is left out. Typical: the median.
LatencyFigures latency_figures(std::span<const double> sorted);

/// `done` requests had completed at `when`.
struct PerfCompletion {
  std::uint64_t done;
  std::uint64_t when;
};

/// The fewest ticks for a request that any stretch of the test took: from the post of one request to
/// a completion of it or a later one. `posted` are the times of requests 0, 1 ...; 0 when empty.
double fewest_ticks_for_one(std::span<const std::uint64_t> posted,
                            std::span<const PerfCompletion> completed);

}  // namespace verbatim::cli
