// SPDX-License-Identifier: BSD-2-Clause
//
// Random traffic against its model, briefly; rc_stress_test.cpp has the long runs.
#include "tests/shm/random_traffic.hpp"

namespace verbatim::harness {
namespace {

class RcRandom : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcRandom, each_way_and_loopback());

TEST_P(RcRandom, TrafficIsWhatItsModelSays) {
  Pair pair(GetParam());
  RandomTraffic(pair, 20240601).run(3000);
}

}  // namespace
}  // namespace verbatim::harness
