// SPDX-License-Identifier: BSD-2-Clause
// How long tests wait, as the environment may say it (tests/support/deadline.hpp).
#include "tests/support/deadline.hpp"

#include <gtest/gtest.h>

namespace verbatim::harness {
namespace {

TEST(DefaultWait, IsANumberOfMillisecondsWithinBounds) {
  EXPECT_EQ(parse_wait_ms("100"), 100);
  EXPECT_EQ(parse_wait_ms("60000"), 60'000);
  EXPECT_EQ(parse_wait_ms("600000"), 600'000);
  for (const char* wrong : {"", " 500", "500 ", "500ms", "0x500", "5e3", "99", "600001", "-5000",
                            "99999999999999999999", "soon"}) {
    EXPECT_EQ(parse_wait_ms(wrong), std::nullopt) << '"' << wrong << '"';
  }
}

TEST(DefaultWait, IsWhatTheEnvironmentSays) {
  ASSERT_EQ(setenv("VERBATIM_TEST_WAIT_MS", "12345", 1), 0);
  EXPECT_EQ(wait_ms_of_environment(), 12'345);
  ASSERT_EQ(unsetenv("VERBATIM_TEST_WAIT_MS"), 0);
  EXPECT_EQ(wait_ms_of_environment(), VERBATIM_TEST_WAIT_MS);
}

}  // namespace
}  // namespace verbatim::harness
