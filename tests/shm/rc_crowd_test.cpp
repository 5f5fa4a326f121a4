// SPDX-License-Identifier: BSD-2-Clause
//
// Crowds: far more processes than cores, and far more queue pairs than a completion queue has doorbells.
// Smaller ones are in rc_many_test.cpp, for the sanitizers.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/shm/all_to_all.hpp"
#include "tests/shm/many_qps.hpp"

namespace verbatim::harness {
namespace {

TEST(RcCrowd, SixtyFourProcessesTalkToEachOtherInAMinuteAtMost) {
  // Generous: two cores with other work need a few seconds of it. Who waits for a time to run out,
  // or for a core that is spun away, needs it for each of the 4096 pairs.
  const auto start = std::chrono::steady_clock::now();
  all_to_all(64, 2);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(RcCrowd, TenThousandQueuePairsBetweenTwoProcessesEachDeliver) {
  many_qps_each_deliver(10'000, 1000);
}

}  // namespace
}  // namespace verbatim::harness
