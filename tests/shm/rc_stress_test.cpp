// SPDX-License-Identifier: BSD-2-Clause
//
// The same promises, for longer: run by release builds only.
#include <cstdlib>

#include "tests/shm/all_to_all.hpp"
#include "tests/shm/dereg_storm.hpp"
#include "tests/shm/random_traffic.hpp"
#include "tests/support/scale.hpp"

namespace verbatim::harness {
namespace {

class RcStress : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcStress, each_way_and_loopback());

/// VERBATIM_TEST_SEED repeats a run that was seen to fail elsewhere, or tries another.
std::uint64_t seed() {
  const char* text = std::getenv("VERBATIM_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 0) : 4711;
}

TEST_P(RcStress, OneHundredThousandRandomRequestsAreWhatTheirModelSays) {
  ::testing::Test::RecordProperty("seed", std::to_string(seed()));
  SCOPED_TRACE(seed());
  Pair pair(GetParam());
  RandomTraffic(pair, seed()).run(100'000);
}

TEST(RcProcesses, SixteenTalkToEachOtherForLong) { all_to_all(16, 300); }

TEST(RcProcesses, TakeTheirMemoryBackInAStormOfTwoPeersForLong) {
  const Setting settings[] = {{Placement::kTwoContexts, MemoryKind::kMapped},
                              {Placement::kTwoProcesses, MemoryKind::kMapped},
                              {Placement::kTwoProcesses, MemoryKind::kOrdinary}};
  for (const Setting& setting : settings) {
    SCOPED_TRACE(name_of(setting));
    run_dereg_storm(setting, scaled_rounds<std::uint32_t>(300, 24));
  }
}

}  // namespace
}  // namespace verbatim::harness
