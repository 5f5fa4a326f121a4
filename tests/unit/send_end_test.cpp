// SPDX-License-Identifier: BSD-2-Clause
// How a send queue comes to an end.
#include "runtime/verbs/software/send_end.hpp"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

TEST(FirstErrorTest, IsSaidByTheOldestRequestAndThoseBehindItAreFlushed) {
  FirstError error;
  error.set(IBV_WC_RETRY_EXC_ERR);
  EXPECT_TRUE(error.is_untold());
  EXPECT_EQ(error.take(), IBV_WC_RETRY_EXC_ERR);
  EXPECT_FALSE(error.is_untold());
  EXPECT_EQ(error.take(), IBV_WC_WR_FLUSH_ERR);
}

TEST(FirstErrorTest, IsNoneWhenTheProgramItselfEndsTheQueue) {
  FirstError error;
  EXPECT_FALSE(error.is_untold());
  EXPECT_EQ(error.take(), IBV_WC_WR_FLUSH_ERR);
}

TEST(FirstErrorTest, IsForgottenWithTheLifeThatItBelongedTo) {
  FirstError error;
  error.set(IBV_WC_REM_ACCESS_ERR);
  error.forget();
  EXPECT_EQ(error.take(), IBV_WC_WR_FLUSH_ERR);
}

TEST(DrainTest, IsOverAtOnceWhereNothingHasBegun) {
  Drain drain;
  EXPECT_TRUE(drain.begin(true, false));
  EXPECT_FALSE(drain.is_under_way());
  EXPECT_FALSE(drain.end()) << "told twice";
}

TEST(DrainTest, IsUnderWayUntilWhatHasBegunIsFinishedAndTellsOfThatOnce) {
  Drain drain;
  EXPECT_FALSE(drain.begin(true, true));
  EXPECT_TRUE(drain.is_under_way());
  EXPECT_TRUE(drain.end());
  EXPECT_FALSE(drain.is_under_way());
  EXPECT_FALSE(drain.end());
}

TEST(DrainTest, TellsNobodyWhoDidNotAsk) {
  Drain drain;
  EXPECT_FALSE(drain.begin(false, false));
  EXPECT_FALSE(drain.begin(false, true));
  EXPECT_FALSE(drain.end());
}

TEST(DrainTest, TellsAsItWasAskedLast) {
  Drain drain;
  EXPECT_FALSE(drain.begin(true, true));
  EXPECT_FALSE(drain.begin(false, true));
  EXPECT_FALSE(drain.end());
}

}  // namespace
}  // namespace verbatim
