// SPDX-License-Identifier: BSD-2-Clause
// The figures of `verbatim perf`, against their definitions.
#include "perf/cli/perf_figures.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace verbatim::cli {
namespace {

TEST(LatencyFigures, AreThoseOfAllSamples) {
  std::vector<double> samples;
  for (int sample = 1; sample <= 1000; ++sample) samples.push_back(sample);
  const LatencyFigures figures = latency_figures(samples);
  EXPECT_EQ(figures.least, 1);
  EXPECT_EQ(figures.most, 1000);
  EXPECT_EQ(figures.typical, 500.5);
  EXPECT_EQ(figures.average, 500.5);
  EXPECT_NEAR(figures.deviation, 288.675, 0.001);
  EXPECT_EQ(figures.percentile_99, 990);
  EXPECT_EQ(figures.percentile_99_9, 999);
}

TEST(LatencyFigures, OfOneSampleAreIt) {
  const LatencyFigures figures = latency_figures(std::vector<double>{7});
  EXPECT_EQ(figures.typical, 7);
  EXPECT_EQ(figures.percentile_99_9, 7);
  EXPECT_EQ(figures.deviation, 0);
}

/// Every stretch, as the definition has it.
double fewest_by_trying(const std::vector<std::uint64_t>& posted,
                        const std::vector<PerfCompletion>& completed) {
  double fewest = std::numeric_limits<double>::infinity();
  for (std::size_t from = 0; from < posted.size(); ++from) {
    for (const PerfCompletion& end : completed) {
      if (end.done <= from) continue;
      fewest = std::min(fewest, static_cast<double>(end.when - posted[from]) /
                                    static_cast<double>(end.done - from));
    }
  }
  return fewest;
}

TEST(Peak, IsThatOfTheFastestStretch) {
  std::mt19937_64 random(28);
  for (int round = 0; round < 200; ++round) {
    const std::size_t messages = 1 + random() % 60, moderation = 1 + random() % 8;
    std::vector<std::uint64_t> posted;
    std::vector<PerfCompletion> completed;
    std::uint64_t now = 1'000'000'000'000'000;
    for (std::size_t number = 0; number < messages; ++number) {
      posted.push_back(now += random() % 100);
      if ((number + 1) % moderation != 0 && number + 1 != messages) continue;
      completed.push_back({number + 1, now += 1 + random() % 1000});
    }
    EXPECT_NEAR(fewest_ticks_for_one(posted, completed), fewest_by_trying(posted, completed), 1e-6);
  }
}

TEST(Peak, IsNothingOfNothing) {
  EXPECT_EQ(fewest_ticks_for_one({}, {}), 0);
  const std::vector<std::uint64_t> posted = {1};
  EXPECT_EQ(fewest_ticks_for_one(posted, {}), 0);
}

}  // namespace
}  // namespace verbatim::cli
