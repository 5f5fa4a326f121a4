// SPDX-License-Identifier: BSD-2-Clause
// How long tests wait and how many rounds they play, as the environment may say it
// (tests/support/deadline.hpp, scale.hpp).
#include "tests/support/deadline.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/support/scale.hpp"

namespace verbatim::harness {
namespace {

TEST(EnvironmentNumber, IsDecimalAndWithinBounds) {
  EXPECT_EQ(parse_number("100", 100, 600'000), 100);
  EXPECT_EQ(parse_number("60000", 100, 600'000), 60'000);
  EXPECT_EQ(parse_number("600000", 100, 600'000), 600'000);
  for (const char* wrong : {"", " 500", "500 ", "500ms", "0x500", "5e3", "99", "600001", "-5000",
                            "99999999999999999999", "soon", "50%"}) {
    EXPECT_EQ(parse_number(wrong, 100, 600'000), std::nullopt) << '"' << wrong << '"';
  }
}

TEST(DefaultWait, IsWhatTheEnvironmentSays) {
  ASSERT_EQ(setenv("VERBATIM_TEST_WAIT_MS", "12345", 1), 0);
  EXPECT_EQ(wait_ms_of_environment(), 12'345);
  ASSERT_EQ(unsetenv("VERBATIM_TEST_WAIT_MS"), 0);
  EXPECT_EQ(wait_ms_of_environment(), VERBATIM_TEST_WAIT_MS);
}

TEST(Scale, IsThePercentageThatTheEnvironmentSays) {
  ASSERT_EQ(setenv("VERBATIM_TEST_SCALE", "7", 1), 0);
  EXPECT_EQ(scale_of_environment(), 7);
  ASSERT_EQ(unsetenv("VERBATIM_TEST_SCALE"), 0);
  EXPECT_EQ(scale_of_environment(), 100);
}

TEST(Scale, LeavesSoManyRoundsThatASentenceMeansWhatItSays) {
  EXPECT_EQ(scaled_rounds(10'000u, 500u, 100), 10'000u);
  EXPECT_EQ(scaled_rounds(10'000u, 500u, 25), 2'500u);
  EXPECT_EQ(scaled_rounds(10'000u, 500u, 5), 500u);
  EXPECT_EQ(scaled_rounds(10'000u, 500u, 1), 500u);
  EXPECT_EQ(scaled_rounds(std::uint64_t{1} << 56, std::uint64_t{1}, 50), std::uint64_t{1} << 55);
}

}  // namespace
}  // namespace verbatim::harness
