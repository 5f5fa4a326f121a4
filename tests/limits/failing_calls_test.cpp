// SPDX-License-Identifier: BSD-2-Clause
// Each allocation and each system call of the library fails once, in a short life that makes every
// kind of object and moves data: the caller sees a clean error or none, nothing is left behind, and
// the next life goes well.
#include <gtest/gtest.h>

#include "tests/limits/conversation.hpp"
#include "tests/limits/failing_calls.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/process_census.hpp"

namespace verbatim::harness {
namespace {

constexpr unsigned kShares = 2;  // tests that share the calls, to run beside each other

class OneFailingCall : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(, OneFailingCall, ::testing::Range(0u, kShares));

TEST_P(OneFailingCall, IsAnsweredCleanlyAndHarmsNothingThatFollows) {
  const AllowedLog whatever("");
  Side partner(std::map<std::string, std::string>{});
  arm_failure(0);
  const Course undisturbed = converse(partner);
  const unsigned calls = disarm_failure();
  ASSERT_TRUE(undisturbed.completed) << undisturbed.refusal << undisturbed.broken;
  ASSERT_GT(calls, 100u) << "the library's calls are not counted";

  const ProcessCensus before = ProcessCensus::take();
  unsigned refused = 0;
  // Some more than were counted: threads may call a few times more or less.
  for (unsigned which = 1 + GetParam(); which <= calls + 20; which += kShares) {
    arm_failure(which);
    const Course course = converse(partner);
    disarm_failure();
    const std::string name = failed_call();
    SCOPED_TRACE("call " + std::to_string(which) + ", " + name);
    ASSERT_EQ(course.broken, "");
    refused += course.completed ? 0 : 1;
    const Course next = converse(partner);
    ASSERT_TRUE(next.completed) << "the next one: " << next.refusal << " " << next.broken;
  }
  EXPECT_GT(refused, 0u) << "no failure was ever noticed";
  EXPECT_EQ(left_behind(before, ProcessCensus::take()), "");
}

}  // namespace
}  // namespace verbatim::harness
