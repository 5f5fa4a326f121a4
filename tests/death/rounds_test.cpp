// SPDX-License-Identifier: BSD-2-Clause
#include "tests/death/rounds.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace verbatim::death {
namespace {

class Death : public ::testing::TestWithParam<std::uint64_t> {};
TEST_P(Death, AtAnyMomentIsSurvived) { run_rounds(GetParam(), kSanitized ? 60 : 200); }
INSTANTIATE_TEST_SUITE_P(Seed, Death, ::testing::Values(1, 2, 3, 4, 5),
                         [](const auto& seed) { return std::to_string(seed.param); });

/// Repeats what VBT_DEATH names.
TEST(DeathAgain, TheRoundThatIsNamed) {
  const char* named = std::getenv("VBT_DEATH");
  if (named == nullptr) GTEST_SKIP() << "VBT_DEATH=<seed>:<round>[:<times>] names none";
  unsigned long long seed = 0;
  unsigned round = 0;
  unsigned times = 100;
  ASSERT_GE(std::sscanf(named, "%llu:%u:%u", &seed, &round, &times), 2);
  repeat_round(seed, round, times);
}

}  // namespace
}  // namespace verbatim::death
