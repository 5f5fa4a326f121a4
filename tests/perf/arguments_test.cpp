// SPDX-License-Identifier: BSD-2-Clause
#include "perf/support/arguments.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbatim::perf {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

TEST(ParseSize, TakesPowersOf1024UnderTheirUsualNames) {
  EXPECT_THAT(parse_size("8"), Optional(8u));
  EXPECT_THAT(parse_size("0"), Optional(0u));
  EXPECT_THAT(parse_size("4K"), Optional(4096u));
  EXPECT_THAT(parse_size("4k"), Optional(4096u));
  EXPECT_THAT(parse_size("64KiB"), Optional(65536u));
  EXPECT_THAT(parse_size("1MB"), Optional(1048576u));
  EXPECT_THAT(parse_size("2G"), Optional(std::uint64_t{2} << 30));
}

TEST(ParseSize, RefusesWhatIsNotWhollyASize) {
  for (const char* text : {"", "K", "-8", "8 ", " 8", "4KK", "4Kx", "1.5M", "8T", "0x10"}) {
    EXPECT_EQ(parse_size(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_size("18446744073709551616"), std::nullopt);
  EXPECT_EQ(parse_size("18014398509481985K"), std::nullopt) << "2^64 + 1024 does not fit";
}

TEST(ParseSizes, TakesListsAndDoublingRanges) {
  EXPECT_THAT(parse_sizes("8"), Optional(ElementsAre(8)));
  EXPECT_THAT(parse_sizes("1K..8K"), Optional(ElementsAre(1024, 2048, 4096, 8192)));
  EXPECT_THAT(parse_sizes("8..20"), Optional(ElementsAre(8, 16)));
}

TEST(ParseSizes, SortsAndDropsRepeats) {
  EXPECT_THAT(parse_sizes("4K,8..32,16,4096"), Optional(ElementsAre(8, 16, 32, 4096)));
}

TEST(ParseSizes, RefusesEmptyItemsAndBackwardRanges) {
  for (const char* text : {"", ",", "8,", ",8", "8..", "..8", "64..8", "0..8", "8...16"}) {
    EXPECT_EQ(parse_sizes(text), std::nullopt) << text;
  }
}

TEST(ParseSizes, ARangeUpToTheLargestNumberEnds) {
  const auto sizes = parse_sizes("1..18446744073709551615");
  ASSERT_TRUE(sizes);
  EXPECT_EQ(sizes->size(), 64u);
}

TEST(ParseCount, ObeysItsBounds) {
  EXPECT_THAT(parse_count("5", 1, 10), Optional(5));
  EXPECT_EQ(parse_count("0", 1, 10), std::nullopt);
  EXPECT_EQ(parse_count("11", 1, 10), std::nullopt);
  EXPECT_EQ(parse_count("5x", 1, 10), std::nullopt);
  EXPECT_EQ(parse_count("", 1, 10), std::nullopt);
}

TEST(SizeText, SaysWholeUnitsAndLeavesOthersInBytes) {
  EXPECT_EQ(size_text(8), "8");
  EXPECT_EQ(size_text(1000), "1000");
  EXPECT_EQ(size_text(4096), "4 KiB");
  EXPECT_EQ(size_text(4097), "4097");
  EXPECT_EQ(size_text(std::uint64_t{4} << 20), "4 MiB");
}

}  // namespace
}  // namespace verbatim::perf
