// SPDX-License-Identifier: BSD-2-Clause
//
// How long the news of a death takes, and what a crash of many costs those who come after.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "tests/death/rounds.hpp"
#include "tests/support/fabric_directory.hpp"
#include "tests/support/process_census.hpp"
#include "tests/support/side.hpp"

namespace verbatim::death {
namespace {

using harness::Endpoint;
using harness::kAnotherProcess;
using harness::MemoryKind;
using harness::ms_since;
using harness::QpInfo;
using harness::QpWish;
using harness::RegionInfo;
using harness::Side;
using Clock = std::chrono::steady_clock;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Beside nobody who needs the processor: the survivor sleeps in its completion channel.
TEST(DeathTime, ASleepingSurvivorHasItsCompletionWithinMilliseconds) {
  const auto session = std::make_shared<harness::Session>();
  Side survivor(session);
  const RegionInfo memory = survivor.allocate(MemoryKind::kMapped, 4096);
  std::vector<double> took;
  for (int round = 0; round < 21; ++round) {
    Side victim(kAnotherProcess);
    const QpInfo qv = victim.create_qp();
    QpWish wish;
    wish.with_channel = 1;
    const QpInfo qs = survivor.create_qp(wish);
    survivor.connect(qs, qv);
    victim.connect(qv, qs);
    const RegionInfo remote = victim.allocate(MemoryKind::kMapped, 4096);
    const auto first = harness::write(0, harness::slice(memory, 0, 64), remote);
    ASSERT_EQ(survivor.post_send(qs, first).error, 0);
    ASSERT_EQ(survivor.poll_sends(qs, 1)[0].status, IBV_WC_SUCCESS);
    // There is no receive for the next: it waits until the end.
    const auto posted = survivor.post_send(qs, harness::send(1, harness::slice(memory, 0, 64)));
    ASSERT_EQ(posted.error, 0);
    ASSERT_TRUE(survivor.poll_once(qs.send_cq, 1).empty());
    ASSERT_EQ(survivor.call<&Endpoint::arm>(qs.send_cq, 0), 0);
    // Asked first, so that the victim idles when it is killed.
    ASSERT_EQ(victim.state(qv), IBV_QPS_RTS);
    const auto killed = Clock::now();
    victim.child().signal(SIGKILL);
    ASSERT_EQ(survivor.call<&Endpoint::take_event>(qs.send_cq, 5000), qs.send_cq);
    const auto done = survivor.poll_once(qs.send_cq, 1);
    took.push_back(ms_since(killed));
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, IBV_WC_RETRY_EXC_ERR);
    victim.child().kill_and_collect();
    EXPECT_EQ(survivor.call<&Endpoint::destroy_qp>(qs.id), 0);
  }
  const double middle = median(took);
  std::printf("from SIGKILL to the completion: %.2f ms (median), %.2f ms (least)\n", middle,
              *std::min_element(took.begin(), took.end()));
  if (!kSanitized) {
    EXPECT_LE(middle, 10.0);
  }
}

/// From the start of a process to its first WRITE.
double time_of_a_new_connection(Side& survivor, const RegionInfo& memory) {
  const auto start = Clock::now();
  Side other(kAnotherProcess);
  const QpInfo qo = other.create_qp();
  const QpInfo qs = survivor.create_qp();
  survivor.connect(qs, qo);
  other.connect(qo, qs);
  const RegionInfo local = other.allocate(MemoryKind::kMapped, 4096);
  EXPECT_EQ(other.post_send(qo, harness::write(1, harness::slice(local, 0, 64), memory)).error, 0);
  EXPECT_EQ(other.poll_sends(qo, 1)[0].status, IBV_WC_SUCCESS);
  const double took = ms_since(start);
  EXPECT_EQ(survivor.call<&Endpoint::destroy_qp>(qs.id), 0);
  return took;
}

TEST(DeathTime, AfterACrashOfAHundredConnectingIsAsFastAsBefore) {
  constexpr std::size_t kCrashed = kSanitized ? 20 : 100;
  constexpr int kTimes = 11;
  const auto session = std::make_shared<harness::Session>();
  Side survivor(session);
  const RegionInfo memory = survivor.allocate(MemoryKind::kMapped, 4096);
  std::vector<double> before;
  for (int i = 0; i < kTimes; ++i) before.push_back(time_of_a_new_connection(survivor, memory));

  std::vector<QpInfo> widowed;
  {
    std::vector<std::unique_ptr<Side>> doomed;
    for (std::size_t i = 0; i < kCrashed; ++i) {
      doomed.push_back(std::make_unique<Side>(kAnotherProcess));
      const QpInfo qd = doomed.back()->create_qp();
      // Half of them are known to the survivor.
      if (i % 2 == 0) continue;
      widowed.push_back(survivor.create_qp());
      survivor.connect(widowed.back(), qd);
      doomed.back()->connect(qd, widowed.back());
    }
    for (const auto& side : doomed) side->child().signal(SIGKILL);
    for (const auto& side : doomed) side->child().kill_and_collect();
  }
  std::vector<double> after;
  for (int i = 0; i < kTimes; ++i) after.push_back(time_of_a_new_connection(survivor, memory));
  std::printf("a new process and its first WRITE: %.2f ms, after %zu crashes %.2f ms\n",
              median(before), kCrashed, median(after));
  if (!kSanitized) {
    EXPECT_LE(*std::min_element(after.begin(), after.end()), 1.5 * median(before) + 1.0);
  }
  EXPECT_TRUE(harness::wait_until([] { return harness::fabric_contents().size() <= 2; }, 5000))
      << ::testing::PrintToString(harness::fabric_contents());
  for (const QpInfo& qp : widowed) EXPECT_EQ(survivor.call<&Endpoint::destroy_qp>(qp.id), 0);
}

}  // namespace
}  // namespace verbatim::death
