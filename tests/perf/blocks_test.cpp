// SPDX-License-Identifier: BSD-2-Clause
#include "perf/support/blocks.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace verbatim::perf {
namespace {

TEST(Blocks, MedianOfOddAndEvenCounts) {
  EXPECT_DOUBLE_EQ(Blocks({3, 1, 2}).median(), 2);
  EXPECT_DOUBLE_EQ(Blocks({4, 1, 3, 2}).median(), 2.5);
}

TEST(Blocks, QuantilesInterpolateBetweenOrderStatistics) {
  const Blocks blocks({50, 10, 20, 40, 30});
  EXPECT_DOUBLE_EQ(blocks.quantile(0), 10);
  EXPECT_DOUBLE_EQ(blocks.quantile(0.25), 20);
  EXPECT_DOUBLE_EQ(blocks.quantile(0.875), 45);
  EXPECT_DOUBLE_EQ(blocks.quantile(1), 50);
}

TEST(Blocks, SpreadIsTheQuartileDistanceRelativeToTheMedian) {
  EXPECT_DOUBLE_EQ(Blocks({10, 20, 30, 40, 50}).spread(), 20.0 / 30.0);
  EXPECT_DOUBLE_EQ(Blocks({7, 7, 7}).spread(), 0);
}

TEST(Blocks, OneDisturbedBlockMovesNeitherMinimumNorMedian) {
  const Blocks blocks({100, 101, 99, 100, 5000});
  EXPECT_DOUBLE_EQ(blocks.min(), 99);
  EXPECT_DOUBLE_EQ(blocks.median(), 100);
  EXPECT_DOUBLE_EQ(blocks.max(), 5000);
}

TEST(Blocks, EmptyOnesAnswerNothing) {
  const Blocks blocks;
  EXPECT_TRUE(std::isnan(blocks.median()));
  EXPECT_TRUE(std::isnan(blocks.min()));
  EXPECT_TRUE(std::isnan(blocks.spread()));
}

TEST(Blocks, PairedRatiosCancelADriftOfTheMachine) {
  // The machine becomes five times slower half-way; test / floor stays 1.5.
  const Blocks floor({10, 10, 50, 50});
  const Blocks test({15, 15, 75, 75});
  const Blocks ratio = paired_ratio(test, floor);
  EXPECT_EQ(ratio.size(), 4u);
  EXPECT_DOUBLE_EQ(ratio.min(), 1.5);
  EXPECT_DOUBLE_EQ(ratio.max(), 1.5);
}

TEST(Blocks, PairedRatiosStopAtTheShorterSeriesAndSkipImpossibleFloors) {
  const Blocks ratio = paired_ratio(Blocks({2, 4, 6}), Blocks({1, 0}));
  ASSERT_EQ(ratio.size(), 1u);
  EXPECT_DOUBLE_EQ(ratio.values()[0], 2);
}

TEST(Blocks, TheStandardErrorIsThatOfTheMean) {
  EXPECT_DOUBLE_EQ(Blocks({2, 4, 4, 6}).mean(), 4);
  EXPECT_DOUBLE_EQ(Blocks({2, 4, 4, 6}).standard_error(), std::sqrt(8.0 / 3 / 4));
  EXPECT_TRUE(std::isnan(Blocks({2}).standard_error()));
}

}  // namespace
}  // namespace verbatim::perf
