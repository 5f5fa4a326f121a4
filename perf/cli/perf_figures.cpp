// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_figures.hpp"

#include <cmath>
#include <cstddef>
#include <limits>

namespace verbatim::cli {
namespace {

/// The least sample that at least `fraction` of all are not above.
double percentile(std::span<const double> sorted, double fraction) {
  const auto rank =
      static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(sorted.size()) - 1e-9));
  return sorted[rank == 0 ? 0 : rank - 1];
}

}  // namespace

LatencyFigures latency_figures(std::span<const double> sorted) {
  LatencyFigures figures;
  const std::size_t half = sorted.size() / 2;
  figures.least = sorted.front();
  figures.most = sorted.back();
  figures.typical = sorted.size() % 2 != 0 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  double sum = 0;
  for (const double sample : sorted) sum += sample;
  figures.average = sum / static_cast<double>(sorted.size());
  double squares = 0;
  for (const double sample : sorted) {
    squares += (sample - figures.average) * (sample - figures.average);
  }
  figures.deviation = std::sqrt(squares / static_cast<double>(sorted.size()));
  figures.percentile_99 = percentile(sorted, 0.99);
  figures.percentile_99_9 = percentile(sorted, 0.999);
  return figures;
}

double fewest_ticks_for_one(std::span<const std::uint64_t> posted,
                            std::span<const PerfCompletion> completed) {
  if (posted.empty() || completed.empty()) return 0;
  // A ratio is least where the difference that it makes zero is (Dinkelbach): each round takes the
  // stretch that is fastest by the last ratio, and there are a handful of rounds.
  const std::uint64_t start = posted.front();
  double ratio = std::numeric_limits<double>::infinity();
  double next = static_cast<double>(completed.back().when - start) /
                static_cast<double>(completed.back().done);
  while (next < ratio) {
    ratio = next;
    double best = 0;
    double latest = -std::numeric_limits<double>::infinity();
    std::size_t latest_from = 0, from = 0;
    for (const PerfCompletion& end : completed) {
      for (; from < posted.size() && from < end.done; ++from) {
        const double begin =
            static_cast<double>(posted[from] - start) - ratio * static_cast<double>(from);
        if (begin <= latest) continue;
        latest = begin;
        latest_from = from;
      }
      const double length =
          static_cast<double>(end.when - start) - ratio * static_cast<double>(end.done) - latest;
      if (length >= best) continue;
      best = length;
      next = (static_cast<double>(end.when) - static_cast<double>(posted[latest_from])) /
             static_cast<double>(end.done - latest_from);
    }
  }
  return ratio;
}

}  // namespace verbatim::cli
