// SPDX-License-Identifier: BSD-2-Clause
#include "perf/figures/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbatim::perf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::optional<RunOptions> parse(const std::vector<std::string>& arguments, std::string& error) {
  return parse_run_options(arguments, error);
}

TEST(RunOptions, WithoutArgumentsTheWholeRangeWithinAMinute) {
  std::string error;
  const auto options = parse({}, error);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->sizes.front(), 8u);
  EXPECT_EQ(options->sizes.back(), 4u << 20);
  EXPECT_EQ(options->seconds, 60);
  EXPECT_FALSE(options->json);
}

TEST(RunOptions, LaterOptionsRefineQuick) {
  std::string error;
  const auto options = parse({"--quick", "--sizes", "8..32", "--json"}, error);
  ASSERT_TRUE(options);
  EXPECT_THAT(options->sizes, ElementsAre(8, 16, 32));
  EXPECT_LT(options->rounds, 10);
  EXPECT_TRUE(options->json);
}

TEST(RunOptions, CpusAreAPair) {
  std::string error;
  const auto options = parse({"--cpus", "3,5"}, error);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->near_cpu, 3);
  EXPECT_EQ(options->far_cpu, 5);
  EXPECT_FALSE(parse({"--cpus", "3"}, error));
}

TEST(RunOptions, ARefusalNamesTheArgument) {
  std::string error;
  EXPECT_FALSE(parse({"--sizes", "8M"}, error)) << "beyond the buffers";
  EXPECT_THAT(error, HasSubstr("8M"));
  EXPECT_FALSE(parse({"--sizes", "12"}, error)) << "no room for an aligned flag";
  EXPECT_FALSE(parse({"--sizes", "4"}, error));
  EXPECT_FALSE(parse({"--rounds"}, error));
  EXPECT_THAT(error, HasSubstr("--rounds"));
  EXPECT_FALSE(parse({"--json", "--csv", "-"}, error)) << "only one can have the output";
  EXPECT_THAT(error, HasSubstr("standard output"));
  EXPECT_TRUE(parse({"--json", "--csv", "f"}, error));
  EXPECT_FALSE(parse({"--frobnicate"}, error));
  EXPECT_THAT(error, HasSubstr("--frobnicate"));
}

}  // namespace
}  // namespace verbatim::perf
