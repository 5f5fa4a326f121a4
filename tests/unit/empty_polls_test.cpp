// SPDX-License-Identifier: BSD-2-Clause
//
// When a thread that polls in vain gives its processor away (runtime/verbs/empty_polls.hpp), and
// that it never does with VERBATIM_POLL=spin, or where a part of the library sees to that itself.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "runtime/sync/polls.hpp"
#include "runtime/time/clock.hpp"
#include "runtime/verbs/empty_polls.hpp"
#include "tests/support/deadline.hpp"
#include "tests/support/yields.hpp"

namespace verbatim {
namespace {

using harness::Deadline;
using harness::yields_of_this_thread;

constexpr std::uint64_t kLongNs = 20'000'000;

/// Said by who starts this program, since the choice is made once.
bool does_library_see_to_it() { return std::getenv("VERBATIM_TEST_LIBRARY_SEES_TO_IT") != nullptr; }

bool spins() {
  const char* const choice = std::getenv("VERBATIM_POLL");
  return choice != nullptr ? std::string_view(choice) == "spin" : does_library_see_to_it();
}

class EmptyPolls : public testing::Test {
 protected:
  void SetUp() override {
    if (does_library_see_to_it()) let_empty_polls_spin();
    choose_how_empty_polls_wait();
    end_empty_polls();
  }
  /// The polls until the next yield; 0: there was none in time.
  static std::uint64_t polls_to_a_yield() {
    const std::uint64_t before = yields_of_this_thread();
    std::uint64_t polls = 0;
    for (const Deadline deadline; !deadline.passed();)
      for (int i = 0; i < 1000; ++i) {
        count_empty_poll(0);
        ++polls;
        if (yields_of_this_thread() != before) return polls;
      }
    return 0;
  }
};

TEST_F(EmptyPolls, GiveTheProcessorAwayNotBeforeSomeHundredsInARow) {
  EXPECT_GE(polls_to_a_yield(), 2 * kEmptyPollsBetweenLooks);
}

TEST_F(EmptyPolls, GiveItAwayAgainAndAgain) {
  for (int i = 0; i < 20; ++i) ASSERT_NE(polls_to_a_yield(), 0u) << i;
}

TEST_F(EmptyPolls, OfOneWhoFindsSomethingNowAndThenAreNoReason) {
  const std::uint64_t before = yields_of_this_thread();
  for (const std::uint64_t end = now_ns() + kLongNs; now_ns() < end;) {
    for (std::uint32_t i = 0; i + 1 < kEmptyPollsBetweenLooks; ++i) count_empty_poll(0);
    end_empty_polls();
  }
  EXPECT_EQ(yields_of_this_thread(), before);
}

// Run once more with VERBATIM_POLL=spin, without it where the library sees to it, and with both.
TEST_F(EmptyPolls, GiveItAwayUnlessTheUserWantsThemToSpin) {
  const std::uint64_t before = yields_of_this_thread();
  for (const std::uint64_t end = now_ns() + kLongNs; now_ns() < end;) count_empty_poll(0);
  EXPECT_EQ(yields_of_this_thread() == before, spins());
}

TEST_F(EmptyPolls, AnswerWhatThePollAnswers) {
  for (std::uint32_t i = 0; i < 3 * kEmptyPollsBetweenLooks; ++i) ASSERT_EQ(count_empty_poll(7), 7);
}

}  // namespace
}  // namespace verbatim
