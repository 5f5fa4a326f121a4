// SPDX-License-Identifier: BSD-2-Clause
// The stored completions of a queue, what it is armed for, and the arithmetic of events that are held
// back.
#include "runtime/verbs/software/completion_ring.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/verbs/software/arming.hpp"
#include "runtime/verbs/software/moderation.hpp"

namespace verbatim {
namespace {

class StoredCompletions : public ::testing::Test {
 protected:
  StoredCompletions() {
    queue_.ring = places_;
    queue_.mask = 3;
    // Where the numbers come round.
    queue_.head.store(~0u - 1);
    queue_.tail.store(~0u - 1);
  }
  bool store(int completion) { return completions::store(queue_, completion, number_); }
  std::vector<int> take_all() {
    std::vector<int> taken;
    while (const int* const one = completions::take(queue_)) taken.push_back(*one);
    return taken;
  }
  using Ints = std::vector<int>;

  int places_[4] = {};
  CompletionRing<int> queue_;
  std::uint32_t number_ = 0;
};

TEST_F(StoredCompletions, ComeOutInTheOrderInWhichTheyWereStored) {
  for (int i = 1; i <= 4; ++i) EXPECT_TRUE(store(i));
  EXPECT_EQ(take_all(), (Ints{1, 2, 3, 4}));
  EXPECT_EQ(take_all(), Ints{});
}

TEST_F(StoredCompletions, AreNeverOverwrittenByThoseThatFindNoRoom) {
  for (int i = 1; i <= 4; ++i) EXPECT_TRUE(store(i));
  EXPECT_FALSE(store(5));
  EXPECT_EQ(take_all(), (Ints{1, 2, 3, 4}));
  EXPECT_TRUE(store(6));
}

TEST_F(StoredCompletions, OfAQueuePairThatGoesAreForgottenAndTheOthersKeepTheirOrder) {
  for (int i = 1; i <= 4; ++i) EXPECT_TRUE(store(i));
  int times[4];
  for (int i = 0; i < 4; ++i) times[i] = places_[i] * 100;
  completions::forget(
      queue_, [](int completion) { return completion == 1 || completion == 3; },
      [&](std::uint32_t from, std::uint32_t to) { times[to] = times[from]; });
  EXPECT_EQ(completions::count(queue_), 2u);
  EXPECT_EQ(times[queue_.head.load() & queue_.mask], 200) << "what lies beside moves along";
  EXPECT_EQ(take_all(), (Ints{2, 4}));
}

TEST_F(StoredCompletions, MoveToALargerRingInOrder) {
  for (int i = 1; i <= 4; ++i) EXPECT_TRUE(store(i));
  EXPECT_NE(completions::take(queue_), nullptr);
  int larger[8] = {};
  int* ring = larger;
  int times[4] = {}, moved_times[8] = {};
  for (int i = 0; i < 4; ++i) times[i] = places_[i] * 100;
  int moved = 0;
  completions::move_to(queue_, ring, 8, [&](std::uint32_t from, std::uint32_t to) {
    EXPECT_EQ(to, static_cast<std::uint32_t>(moved));
    moved_times[to] = times[from];
    ++moved;
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(moved_times[i], larger[i] * 100) << "what lies beside it";
  EXPECT_EQ(ring, places_) << "the old one, for who frees it";
  EXPECT_EQ(moved, 3);
  for (int i = 5; i <= 9; ++i) EXPECT_TRUE(store(i));
  EXPECT_FALSE(store(10));
  EXPECT_EQ(take_all(), (Ints{2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_F(StoredCompletions, AreToldOfOnce) {
  std::uint32_t told = 0;  // long ago, by numbers that have come round
  for (int i = 1; i <= 2; ++i) EXPECT_TRUE(store(i));
  EXPECT_EQ(completions::first_untold(queue_, told - 100), queue_.head.load());
  told = queue_.head.load() + 1;
  EXPECT_EQ(completions::first_untold(queue_, told), told);
  EXPECT_EQ(take_all(), (Ints{1, 2}));
  EXPECT_EQ(completions::first_untold(queue_, told), queue_.head.load());
}

TEST_F(StoredCompletions, ThatMakeNoEventArePassedOverUntilOneOfThemIsToldOf) {
  std::uint32_t told = queue_.head.load();
  const auto is_even = [](int completion) { return completion % 2 == 0; };
  EXPECT_FALSE(completions::tell_next(queue_, told, is_even));
  EXPECT_TRUE(store(1));
  EXPECT_FALSE(completions::tell_next(queue_, told, is_even));
  for (int i = 2; i <= 4; ++i) EXPECT_TRUE(store(i));
  EXPECT_TRUE(completions::tell_next(queue_, told, is_even));
  EXPECT_EQ(told, queue_.head.load() + 2) << "of 2, and so of 1";
  EXPECT_TRUE(completions::tell_next(queue_, told, is_even)) << "of 4";
  EXPECT_FALSE(completions::tell_next(queue_, told, is_even));
}

TEST(ArmedQueue, StaysArmedForAllWhateverItIsAskedForNext) {
  EXPECT_EQ(armed::again(armed::kForNothing, false), armed::kForAll);
  EXPECT_EQ(armed::again(armed::kForNothing, true), armed::kForSolicited);
  EXPECT_EQ(armed::again(armed::kForSolicited, true), armed::kForSolicited);
  EXPECT_EQ(armed::again(armed::kForSolicited, false), armed::kForAll);
  EXPECT_EQ(armed::again(armed::kForAll, true), armed::kForAll);
}

TEST(ArmedQueue, TellsOfWhatItIsArmedFor) {
  EXPECT_TRUE(armed::is_met(armed::kForAll, false));
  EXPECT_TRUE(armed::is_met(armed::kForAll, true));
  EXPECT_FALSE(armed::is_met(armed::kForSolicited, false));
  EXPECT_TRUE(armed::is_met(armed::kForSolicited, true));
  EXPECT_FALSE(armed::is_met(armed::kForNothing, true));
}

Moderation moderation(std::uint16_t count, std::uint16_t period_us) {
  Moderation made;
  made.count = count;
  made.period_us = period_us;
  return made;
}

TEST(HeldEvents, AreHeldOnlyForACountAndAPeriod) {
  EXPECT_TRUE(moderation(2, 1).is_on());
  EXPECT_FALSE(moderation(1, 1).is_on()) << "each completion has its event";
  EXPECT_FALSE(moderation(0, 1).is_on());
  EXPECT_FALSE(moderation(2, 0).is_on());
}

TEST(HeldEvents, WaitForAsManyAsWereAskedSinceTheQueueWasArmed) {
  Moderation m = moderation(4, 10);
  m.begin(0);
  EXPECT_EQ(m.missing(), 4u);
  m.stored = 3;
  EXPECT_EQ(m.missing(), 1u);
  m.stored = 4;
  EXPECT_EQ(m.missing(), 0u);
  m.begin(0);
  EXPECT_EQ(m.missing(), 4u) << "armed again, it counts again";
}

TEST(HeldEvents, AreNotBroughtByWhatWaitedWhenTheQueueWasArmed) {
  Moderation m = moderation(4, 10);
  m.taken = 7;
  m.begin(5);
  EXPECT_EQ(m.missing(), 9u) << "those five, and four more";
  m.taken += 5;
  EXPECT_EQ(m.missing(), 4u);
  m.stored = 1;
  EXPECT_EQ(m.missing(), 3u);
  m.taken += 3;
  EXPECT_EQ(m.missing(), 0u);
}

TEST(HeldEvents, AreLookedAtSomeTimesInThePeriodAndAtItsEnd) {
  Moderation m = moderation(4, 16'000);
  m.hold(1, 1'000'000);
  EXPECT_EQ(m.until(), 17'000'000u);
  EXPECT_EQ(m.look_again(1'000'000), 2'000'000u);
  EXPECT_EQ(m.look_again(16'500'000), m.until());
  Moderation brief = moderation(4, 100);
  brief.hold(1, 0);
  EXPECT_EQ(brief.look_again(0), 50'000u) << "not more often than a thread can wake";
}

}  // namespace
}  // namespace verbatim
