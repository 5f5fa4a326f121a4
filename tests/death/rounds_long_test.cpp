// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include <string>

#include "tests/death/rounds.hpp"

namespace verbatim::death {
namespace {

class DeathLong : public ::testing::TestWithParam<std::uint64_t> {};
TEST_P(DeathLong, AtAnyMomentIsSurvived) { run_rounds(GetParam(), kSanitized ? 200 : 1000); }
INSTANTIATE_TEST_SUITE_P(Seed, DeathLong, ::testing::Range<std::uint64_t>(101, 111),
                         [](const auto& seed) { return std::to_string(seed.param); });

}  // namespace
}  // namespace verbatim::death
