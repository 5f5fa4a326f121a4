// SPDX-License-Identifier: BSD-2-Clause
#include "perf/support/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace verbatim::perf {
namespace {

TEST(Histogram, EveryValueLiesWithinItsBucketAndTheBucketsAreNarrow) {
  for (std::uint64_t value = 0; value < 1'000'000; value += value < 4096 ? 1 : 61) {
    const unsigned bucket = Histogram::bucket_of(value);
    ASSERT_LT(bucket, Histogram::kBuckets);
    ASSERT_LE(value, Histogram::upper_edge(bucket));
    if (bucket > 0) {
      ASSERT_GT(value, Histogram::upper_edge(bucket - 1));
    }
    ASSERT_LE(static_cast<double>(Histogram::upper_edge(bucket) - value),
              static_cast<double>(value) / 64.0);
  }
}

TEST(Histogram, PercentilesAgreeWithSortedSamplesToOnePartIn64) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> durations(5.0, 1.5);
  auto histogram = std::make_unique<Histogram>();
  std::vector<std::uint64_t> samples;
  for (int i = 0; i < 20'000; ++i) {
    samples.push_back(static_cast<std::uint64_t>(durations(random)) + 1);
    histogram->record(samples.back());
  }
  std::sort(samples.begin(), samples.end());
  for (const double fraction : {0.01, 0.5, 0.9, 0.99, 0.999}) {
    const auto rank = static_cast<std::size_t>(std::ceil(fraction * 20'000)) - 1;
    const auto exact = static_cast<double>(samples[rank]);
    const auto found = static_cast<double>(histogram->percentile(fraction));
    EXPECT_GE(found, exact) << fraction;
    EXPECT_LE(found, exact * (1 + 1.0 / 64) + 1) << fraction;
  }
  EXPECT_EQ(histogram->percentile(1.0), samples.back());
  EXPECT_EQ(histogram->min(), samples.front());
  EXPECT_EQ(histogram->max(), samples.back());
}

TEST(Histogram, MergedHalvesEqualTheWhole) {
  auto whole = std::make_unique<Histogram>();
  auto half = std::make_unique<Histogram>();
  auto other = std::make_unique<Histogram>();
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    whole->record(i * i);
    (i % 3 == 0 ? half : other)->record(i * i);
  }
  half->merge(*other);
  EXPECT_EQ(half->count(), whole->count());
  EXPECT_EQ(half->min(), whole->min());
  EXPECT_EQ(half->max(), whole->max());
  for (int percent = 1; percent <= 100; ++percent) {
    EXPECT_EQ(half->percentile(percent / 100.0), whole->percentile(percent / 100.0));
  }
}

TEST(Histogram, AnEmptyOneAnswersZeroAndClearedOneIsEmpty) {
  auto histogram = std::make_unique<Histogram>();
  EXPECT_EQ(histogram->percentile(0.5), 0u);
  EXPECT_EQ(histogram->min(), 0u);
  histogram->record(17);
  EXPECT_EQ(histogram->percentile(0.0), 17u);
  histogram->clear();
  EXPECT_EQ(histogram->count(), 0u);
  EXPECT_EQ(histogram->percentile(0.5), 0u);
}

TEST(Histogram, ADurationBeyondTheRangeIsCountedAtItsEnd) {
  auto histogram = std::make_unique<Histogram>();
  histogram->record(~std::uint64_t{0});
  EXPECT_EQ(histogram->count(), 1u);
  EXPECT_EQ(histogram->percentile(0.5), (std::uint64_t{1} << Histogram::kMaxBits) - 1);
}

}  // namespace
}  // namespace verbatim::perf
