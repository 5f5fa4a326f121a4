// SPDX-License-Identifier: BSD-2-Clause
// Which looks at doorbells are put off: those after one that found few, where that is faster.
#include "providers/shm/queues/gathering.hpp"

#include <gtest/gtest.h>

namespace verbatim::shm {
namespace {

/// A program that polls, and those who ring for it.
class GatheringTest : public ::testing::Test {
 protected:
  /// What a look finds, and how long a message takes, when it is put off and when it is not.
  struct Ringing {
    std::uint32_t found = 0, found_put_off = 0;
    std::uint64_t ns = 0, ns_put_off = 0;
    bool is_full = false;
  };
  /// How many of so many looks are put off.
  std::uint32_t look(std::uint32_t looks, const Ringing& ringing) {
    std::uint32_t waited = 0;
    for (std::uint32_t i = 0; i < looks; ++i) {
      const bool waits = gathering_.pauses() != 0;
      waited += waits;
      const std::uint32_t found = waits ? ringing.found_put_off : ringing.found;
      now_ += found * (waits ? ringing.ns_put_off : ringing.ns);
      if (gathering_.note(found, ringing.is_full)) gathering_.judge(now_);
    }
    return waited;
  }
  std::uint32_t look_until_it_is_known(const Ringing& ringing) {
    return look((2 * Gathering::kPairs + 1) * Gathering::kLooks, ringing);
  }

  static constexpr std::uint32_t kKeptLooks = (Gathering::kKept - 1) * Gathering::kLooks;
  std::uint64_t now_ = 1;
  Gathering gathering_;
};

TEST_F(GatheringTest, PutsLooksOffWhereMessagesTakeLessTimeThen) {
  const Ringing ringing{5, 12, 150, 100};
  EXPECT_GT(look_until_it_is_known(ringing), 0U);
  EXPECT_GE(look(kKeptLooks, ringing), kKeptLooks - Gathering::kKept)
      << "all but one of each round";
}

TEST_F(GatheringTest, PutsNoLookOffWhereMessagesTakeAsLongOrLonger) {
  for (const std::uint64_t ns_put_off : {100, 300}) {
    gathering_ = {};
    const Ringing lockstep{8, 8, 100, ns_put_off};
    EXPECT_GT(look_until_it_is_known(lockstep), 0U) << "it was tried";
    EXPECT_EQ(look(kKeptLooks, lockstep), 0U);
  }
}

TEST_F(GatheringTest, PutsNoLookOffAfterOneThatFoundMany) {
  const Ringing ringing{Gathering::kWorth, Gathering::kWorth, 150, 100};
  EXPECT_EQ(look_until_it_is_known(ringing), 0U);
}

TEST_F(GatheringTest, PutsNoLookOffWhereOneRingsAtATime) {
  EXPECT_EQ(look_until_it_is_known({1, 1, 150, 100}), 0U);
}

TEST_F(GatheringTest, PutsNoLookOffAfterOneThatFoundAsManyAsTheProgramAsksFor) {
  EXPECT_EQ(look_until_it_is_known({4, 4, 150, 100, true}), 0U);
}

TEST_F(GatheringTest, FindsOutWhenItHasChanged) {
  const Ringing lockstep{8, 8, 100, 300}, many{5, 12, 150, 100};
  look_until_it_is_known(many);
  look(kKeptLooks, many);
  look_until_it_is_known(lockstep);
  EXPECT_EQ(look(kKeptLooks, lockstep), 0U);
}

}  // namespace
}  // namespace verbatim::shm
