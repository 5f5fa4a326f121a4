// SPDX-License-Identifier: BSD-2-Clause
// Reading the output of other libraries' programs (as their Debian 12 versions print it), and the
// verdicts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "perf/mpi/job.hpp"
#include "perf/peers/libfabric.hpp"
#include "perf/peers/ucx.hpp"
#include "perf/peers/verdict.hpp"

namespace verbatim::perf {
namespace {

TEST(ParseUcx, TakesTheOverallRateOfTheLastLine) {
  const auto result = parse_ucx(
      "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n"
      "20000,0.090,0.091,0.090,84.89,84.89,11126213,11126214\n");
  ASSERT_TRUE(result);
  EXPECT_DOUBLE_EQ(result->messages_per_second, 11126214);
  EXPECT_NEAR(result->latency_ns(), 89.88, 0.01);
}

TEST(ParseUcx, AnErrorIsNoResult) {
  EXPECT_FALSE(parse_ucx(""));
  EXPECT_FALSE(parse_ucx(
      "[1795252311.048241] [vm:5495 :0] libperf.c:1398 UCX  ERROR Cannot use posix/posix\n"));
  EXPECT_FALSE(parse_ucx(
      "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n"));
  EXPECT_FALSE(parse_ucx("20000,0.090,0.090,0.090,84.89,84.89,11126213,0\n")) << "no rate at all";
}

TEST(ParsePingpong, TakesTheMoreExactOfTimeAndRate) {
  const auto fast = parse_pingpong(
      "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n"
      "8       100k    =100k    1.5m        0.07s     24.40       0.33       3.05\n");
  ASSERT_TRUE(fast);
  EXPECT_NEAR(*fast, 1000 / 3.05, 1e-9);
  const auto slow = parse_pingpong(
      "1m      1k      =1k      1.9g        0.31s   6744.47     155.48       0.01\n");
  ASSERT_TRUE(slow);
  EXPECT_DOUBLE_EQ(*slow, 155480);
}

TEST(ParsePingpong, WithoutAResultLineNothing) {
  EXPECT_FALSE(parse_pingpong(
      "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n"));
  EXPECT_FALSE(parse_pingpong("fi_getinfo: -61 (No data available)\n"));
}

TEST(ParseMpi, TakesTheLinesThatAreFiguresAndNothingElse) {
  const auto figures = parse_mpi_figures(
      "figure latency 8 221.400 210.100 ns 0/9\n"
      "[host:17] mca_base_component_repository_open: unable to open mca_x\n"
      "figure posted 10000 227.900 224.000 ns 5/9\n"
      "figure latency 8 nan nan ns 0/9\n"
      "figure latency 8 0.000 0.000 ns 0/9\n"
      "figure latency 8 221.400 210.100 ns 0/0\n"
      "figure latency 8 221.400 210.100 ns 0/9 more\n"
      "figure latency 8 221.4");
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].name, "latency");
  EXPECT_EQ(figures[0].with, 8u);
  EXPECT_DOUBLE_EQ(figures[0].median, 221.4);
  EXPECT_DOUBLE_EQ(figures[0].least, 210.1);
  EXPECT_EQ(figures[1].with, 10000u);
  EXPECT_EQ(figures[1].disturbed, 5);
  EXPECT_EQ(figures[1].blocks, 9);
}

Verdict verdict(Sense sense, double target, Blocks values) {
  return {"R0", "figure", "x", sense, target, std::move(values), {}, {}};
}

TEST(Verdict, TheMedianDecidesInBothSenses) {
  EXPECT_EQ(verdict(Sense::kAtMost, 1.4, Blocks({1.3, 1.4, 9})).word(), "pass");
  EXPECT_EQ(verdict(Sense::kAtMost, 1.4, Blocks({1.3, 1.41, 9})).word(), "short");
  EXPECT_EQ(verdict(Sense::kAtLeast, 60, Blocks({10, 60, 70})).word(), "pass");
  EXPECT_EQ(verdict(Sense::kAtLeast, 60, Blocks({10, 59, 70})).word(), "short");
}

TEST(Verdict, ADisturbedMeasurementIsNoVerdict) {
  Verdict disturbed = verdict(Sense::kAtMost, 1.4, Blocks({1}));
  disturbed.disturbed = true;
  EXPECT_EQ(disturbed.word(), "disturbed");
  EXPECT_FALSE(disturbed.judged());
}

TEST(Verdict, WithoutAValueItNeitherPassesNorFallsShort) {
  Verdict missing = verdict(Sense::kAtMost, 1, Blocks{});
  missing.missing = "ucx-utils is not installed";
  EXPECT_EQ(missing.word(), "not measurable here");
  EXPECT_FALSE(missing.judged());
  EXPECT_EQ(verdict(Sense::kShown, 0, Blocks({1})).word(), "shown");
  EXPECT_FALSE(verdict(Sense::kShown, 0, Blocks({1})).judged());
}

TEST(Verdict, ATimeByItselfIsShownAndNotJudged) {
  for (const char* unit : {"ns", "us", "ms", "million/s"}) {
    Verdict absolute = verdict(Sense::kAtMost, 1, Blocks({2}));
    absolute.unit = unit;
    EXPECT_EQ(absolute.word(), "shown") << unit;
    EXPECT_FALSE(absolute.judged()) << unit;
  }
  Verdict memory = verdict(Sense::kAtMost, 1, Blocks({2}));
  memory.unit = "KiB";
  EXPECT_EQ(memory.word(), "short") << "memory is no matter of a busy host";
}

}  // namespace
}  // namespace verbatim::perf
