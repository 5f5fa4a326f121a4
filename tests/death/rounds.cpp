// SPDX-License-Identifier: BSD-2-Clause
#include "tests/death/rounds.hpp"

#include <gtest/gtest.h>
#include <malloc.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>

#include "tests/death/roles.hpp"
#include "tests/support/child.hpp"
#include "tests/support/fabric_directory.hpp"
#include "tests/support/process_census.hpp"

namespace verbatim::death {
namespace {

using Clock = std::chrono::steady_clock;
using harness::Child;
using harness::ms_since;

class Bystander {
 public:
  Offer prepare(Plan plan) {
    // 67 ms a try: nobody waits until both have connected.
    if (plan.timeout < 14) plan.timeout = 11;
    child_.control().send_value(Order{Step::kPrepare, plan, {}});
    return child_.control().receive_value<Offer>();
  }
  /// Traffic begins once it is connected.
  void connect(const Offer& offer) {
    child_.control().send_value(Order{Step::kConnect, {}, offer});
  }
  void tell_of_the_end(const Plan& plan) {
    child_.control().send_value(Order{Step::kEnd, plan, {}});
  }
  void await_connected() { (void)child_.control().receive_value<std::uint32_t>(); }
  std::string complaints() { return child_.control().receive_value<std::string>(60'000); }
  void quit() {
    child_.control().send_value(Order{});
    EXPECT_EQ(child_.wait().exit_status, 0);
  }

 private:
  Child child_{"bystander"};
};

class Rounds {
 public:
  void run(const Plan& plan);
  void expect_nothing_left();
  void quit() { bystander_.quit(); }
  double slowest_end_ms() const { return slowest_end_ms_; }
  double slowest_meeting_ms() const { return slowest_meeting_ms_; }
  /// What the survivor holds now is what it may hold: everything was used once.
  void remember();

 private:
  static bool past(Clock::time_point when) { return Clock::now() >= when; }
  void kill(Child& victim, Half& half, const Plan& plan, Clock::time_point when);

  harness::Session session_;
  const Memory memories_[2] = {Memory(false), Memory(true)};
  Bystander bystander_;
  double slowest_end_ms_ = 0;
  double slowest_meeting_ms_ = 0;
  harness::ProcessCensus before_;
  std::size_t heap_before_ = 0;
};

void Rounds::kill(Child& victim, Half& half, const Plan& plan, Clock::time_point when) {
  while (!past(when)) {
    // Who does not take a message leaves its sender in the middle of it.
    if (plan.moment != Moment::kHalfWritten) half.pump();
  }
  victim.signal(SIGKILL);
}

void Rounds::run(const Plan& plan) {
  SCOPED_TRACE(plan.describe());
  Child victim("victim");
  victim.control().send_value(plan);
  Half half(session_, memories_[plan.mapped], plan, Half::Part::kSurvivor);
  const auto after = std::chrono::microseconds(plan.kill_after_us);
  if (plan.moment == Moment::kOpening) {
    for (const auto when = Clock::now() + after; !past(when);) sched_yield();
    victim.kill_and_collect();
    half.close();
    EXPECT_EQ(half.complaints(), "");
    return;
  }
  const Offer from_victim = victim.control().receive_value<Offer>();
  std::optional<Offer> from_bystander;
  if (plan.with_bystander) {
    from_bystander = bystander_.prepare(plan);
    bystander_.connect(victim.control().receive_value<Offer>());
    bystander_.await_connected();
  }
  // Connected before the victim is, which may send at once; or at the same moment.
  if (plan.moment != Moment::kConnecting) half.connect(from_victim);
  victim.control().send_value(half.offer());
  if (from_bystander) victim.control().send_value(*from_bystander);
  const auto start = Clock::now();
  if (plan.moment == Moment::kConnecting) half.connect(from_victim);
  if (plan.moment == Moment::kConnecting) {
    kill(victim, half, plan, Clock::now() + after);
  } else {
    // Nobody's time runs out before it has connected.
    (void)victim.control().receive_value<std::uint32_t>();
    // Each connection has carried something, if anything flows on it, or the first words have met.
    if (plan.moment != Moment::kHalfWritten) {
      EXPECT_TRUE(harness::wait_until([&] {
        half.pump();
        return half.all_have_met();
      })) << half.describe()
          << half.complaints();
      slowest_meeting_ms_ = std::max(slowest_meeting_ms_, ms_since(start));
    }
    if (plan.moment == Moment::kChurn || plan.moment == Moment::kLeaving)
      victim.control().send_value(std::uint32_t{1});
    kill(victim, half, plan, Clock::now() + after);
  }
  const auto killed = Clock::now();
  if (plan.with_bystander) bystander_.tell_of_the_end(plan);
  half.see_the_end(plan.survivor_sleeps);
  slowest_end_ms_ = std::max(slowest_end_ms_, ms_since(killed));
  half.close();
  EXPECT_EQ(half.complaints(), "");
  if (plan.with_bystander) {
    EXPECT_EQ(bystander_.complaints(), "");
  }
  victim.wait();
}

void Rounds::remember() {
  expect_nothing_left();
  before_ = harness::ProcessCensus::take();
  heap_before_ = mallinfo2().uordblks;
}

void Rounds::expect_nothing_left() {
  if (before_.descriptors.empty()) return;
  std::string left;
  EXPECT_TRUE(harness::wait_until(
      [&] {
        left = left_behind(before_, harness::ProcessCensus::take());
        return left.empty();
      },
      5000))
      << left;
  // The survivors' own names, and the lock.
  EXPECT_TRUE(harness::wait_until([] { return harness::fabric_contents().size() <= 3; }, 5000))
      << ::testing::PrintToString(harness::fabric_contents());
  if (!kSanitized) {
    EXPECT_LT(mallinfo2().uordblks, heap_before_ + (64u << 10));
  }
}

}  // namespace

void run_rounds(std::uint64_t seed, std::uint32_t count) {
  Rounds rounds;
  for (std::uint32_t round = 0; round < count; ++round) {
    rounds.run(Plan::of(seed, round));
    if (round == 30) rounds.remember();
    if (::testing::Test::HasFailure()) break;
  }
  // The name of somebody who was killed before anyone had met it goes when the next one comes, who
  // is met.
  const auto unmet = [&](std::uint32_t round) {
    const Moment moment = Plan::of(seed, round).moment;
    return moment == Moment::kOpening || moment == Moment::kConnecting;
  };
  std::uint32_t last = count;
  while (unmet(last)) ++last;
  rounds.run(Plan::of(seed, last));
  rounds.expect_nothing_left();
  rounds.quit();
  std::printf(
      "seed %llu: all was over at most %.1f ms after the kill, the first words after %.1f ms\n",
      static_cast<unsigned long long>(seed), rounds.slowest_end_ms(), rounds.slowest_meeting_ms());
}

void repeat_round(std::uint64_t seed, std::uint32_t round, std::uint32_t times) {
  Rounds rounds;
  for (std::uint32_t i = 0; i < times && !::testing::Test::HasFailure(); ++i)
    rounds.run(Plan::of(seed, round));
  rounds.quit();
}

}  // namespace verbatim::death
