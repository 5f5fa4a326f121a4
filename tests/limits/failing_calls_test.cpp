// SPDX-License-Identifier: BSD-2-Clause
// Each allocation and each system call of the library fails once, in short lives that together make
// every kind of object and move data: the caller sees a clean error or none, nothing is left
// behind, and the next life goes well.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/limits/conversation.hpp"
#include "tests/limits/failing_calls.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/process_census.hpp"

namespace verbatim::harness {
namespace {

constexpr unsigned kShares = 4;  // tests that share the calls, to run beside each other
#ifdef VBT_UNDER_THREAD_SANITIZER
constexpr unsigned kPlayed = 1;  // a life takes ten times as long
#else
constexpr unsigned kPlayed = kShares;
#endif

class OneFailingCall : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(, OneFailingCall, ::testing::Range(0u, kPlayed));

/// Those that were made to fail with EINTR, which is no failure at all.
bool is_interruption(const std::string& name) {
  return name == "epoll_wait" || name == "poll" || name == "read";
}

/// `live`: one life from beginning to end.
template <class Live>
void fail_each_call(unsigned share, Live&& live) {
  // The fewest of some lives: on a busy machine one may call a thousand times to wait, and each of
  // those calls would be a life more.
  unsigned calls = ~0u;
  for (int i = 0; i < 3; ++i) {
    arm_failure(0);
    const Course undisturbed = live();
    calls = std::min(calls, disarm_failure());
    ASSERT_TRUE(undisturbed.completed) << undisturbed.refusal << undisturbed.broken;
  }
  ASSERT_GT(calls, 100u) << "the library's calls are not counted";

  const ProcessCensus before = ProcessCensus::take();
  unsigned refused = 0;
  // Some more than were counted: threads may call a few times more or less.
  for (unsigned which = 1 + share; which <= calls + 20; which += kShares) {
    arm_failure(which);
    const Course course = live();
    disarm_failure();
    const std::string name = failed_call();
    SCOPED_TRACE("call " + std::to_string(which) + ", " + name);
    ASSERT_EQ(course.broken, "");
    if (is_interruption(name)) {
      ASSERT_TRUE(course.completed) << "by a signal: " << course.refusal;
    }
    refused += course.completed ? 0 : 1;
    const Course next = live();
    ASSERT_TRUE(next.completed) << "the next one: " << next.refusal << " " << next.broken;
  }
  EXPECT_GT(refused, 0u) << "no failure was ever noticed";
  EXPECT_EQ(left_behind(before, ProcessCensus::take()), "");
}

TEST_P(OneFailingCall, IsAnsweredCleanlyAndHarmsNothingThatFollows) {
  const AllowedLog whatever("");
  Side partner(std::map<std::string, std::string>{});
  const std::filesystem::path lock = std::filesystem::path(getenv("VERBATIM_FABRIC")) / "lock";
  fail_each_call(GetParam(), [&] {
    Course course = converse(partner);
    // Who leaves last takes it along; the partner has not left.
    if (!std::filesystem::exists(lock)) course.broken += "the folder's lock was taken away";
    return course;
  });
}

TEST_P(OneFailingCall, HarmsNoneOfTheRarerObjects) {
  const AllowedLog whatever("");
  fail_each_call(GetParam(), make_the_rarer_objects);
}

}  // namespace
}  // namespace verbatim::harness
