// SPDX-License-Identifier: BSD-2-Clause
//
// The clock of waits for other processes. The service thread's part is played by the test, at times
// that it makes up.
#include "runtime/time/wait_clock.hpp"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kSecond = 1000 * kMs;

class WaitClockTest : public ::testing::Test {
 protected:
  WaitClockTest() { clock_.start(at_); }
  /// A turn of the thread.
  void turn(std::uint64_t takes, std::uint64_t of_it_asleep = 0) {
    at_ += takes;
    clock_.slept(of_it_asleep);
    clock_.hear(at_);
  }
  std::uint64_t heard() { return clock_.heard(begun_); }

  WaitClock clock_;
  std::uint64_t at_ = now_ns();
  const std::uint64_t begun_ = at_;
};

TEST_F(WaitClockTest, StandsWhereAllWasRead) {
  EXPECT_EQ(heard(), begun_);
  turn(kMs);
  turn(kMs, kMs);
  EXPECT_EQ(heard(), begun_ + 2 * kMs);
}

TEST_F(WaitClockTest, LeavesOutWhatTheThreadWasAway) {
  turn(10 * kSecond);
  EXPECT_EQ(heard(), begun_ + WaitClock::kAway);
  turn(kMs);
  EXPECT_EQ(heard(), begun_ + WaitClock::kAway + kMs);
}

TEST_F(WaitClockTest, CountsSleepThatWasMeant) {
  turn(kSecond, kSecond);
  EXPECT_EQ(heard(), begun_ + kSecond);
  turn(10 * kSecond, kSecond);
  EXPECT_EQ(heard(), begun_ + 2 * kSecond + WaitClock::kAway);
}

TEST_F(WaitClockTest, IsBehindUntilAllIsRead) {
  EXPECT_FALSE(clock_.is_behind(at_ + WaitClock::kAway));
  EXPECT_TRUE(clock_.is_behind(at_ + WaitClock::kAway + 1));
  turn(kSecond);
  EXPECT_FALSE(clock_.is_behind(at_));
}

TEST_F(WaitClockTest, AWaitThatBeginsAfterAnAbsenceIsNoShorterAndNoLonger) {
  turn(10 * kSecond);
  const std::uint64_t before = now_ns();
  const std::uint64_t begun = clock_.begin();
  EXPECT_GE(begun + 10 * kSecond - WaitClock::kAway, before);
  EXPECT_LE(begun + 10 * kSecond - WaitClock::kAway, now_ns());
}

TEST_F(WaitClockTest, WhatIsLeftOutIsNotTakenFromAWaitThatBeginsNow) {
  at_ -= now_ns() / 2;
  clock_.start(at_);
  turn(now_ns() - at_);
  EXPECT_GE(clock_.begin(), heard());
}

TEST_F(WaitClockTest, AWaitThatBeginsInAnAbsenceIsNoShorterAndNotLongerByIt) {
  constexpr std::uint64_t kSleep = 50 * kMs;
  const std::uint64_t absence = now_ns() / 2;  // a machine may have begun just now
  at_ -= absence;
  clock_.start(at_);
  clock_.sleeps_until(at_ + kSleep);
  const std::uint64_t begun = clock_.begin();
  turn(absence, kSleep);
  EXPECT_LE(heard(), begun);
  EXPECT_GE(heard() + kSleep + WaitClock::kAway, begun);
}

/// Of a thread that hangs in a line of the log, say. Stopped as a whole, nobody asks either.
TEST_F(WaitClockTest, GoesOnWithoutAThreadThatHangsWhileSomebodyAsks) {
  std::uint64_t now = begun_ + 1000 * kSecond;
  EXPECT_EQ(clock_.heard(now), begun_);
  std::uint64_t asked = 0;
  for (; clock_.heard(now) == begun_ && asked < 2 * WaitClock::kHangs; asked += kMs) now += kMs;
  EXPECT_GE(asked, WaitClock::kHangs - 2 * kMs);
  EXPECT_LE(asked, WaitClock::kHangs + 2 * kMs);
  EXPECT_EQ(clock_.heard(now), now);
  at_ = now;
  turn(0);
  EXPECT_EQ(clock_.heard(now), begun_ + WaitClock::kAway) << "it is there again";
}

TEST(WaitsEnd, OnlyAfterALookMadeBehindTheirDate) {
  std::uint64_t date = 100;
  EXPECT_FALSE(is_over(date, 99));
  EXPECT_FALSE(is_over(date, 100)) << "the look before this may lie long back";
  EXPECT_TRUE(is_over(date, 100));
  EXPECT_TRUE(is_over(date, 0)) << "it does not begin again";
}

}  // namespace
}  // namespace verbatim
