// SPDX-License-Identifier: BSD-2-Clause
//
// The beginning of a connection when processes are slow, or gone: what a wire's timeout counts, and
// what the first words find.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "tests/support/side.hpp"

namespace verbatim::death {
namespace {

using harness::Endpoint;
using harness::kAnotherProcess;
using harness::Link;
using harness::MemoryKind;
using harness::QpInfo;
using harness::QpWish;
using harness::RegionInfo;
using harness::Request;
using harness::Side;
using Clock = std::chrono::steady_clock;

Clock::duration wire_time(const Link& link) {
  return std::chrono::nanoseconds((std::uint64_t{4096} << link.timeout) * (link.retry_count + 1u));
}

/// Stops a process, and has it stopped when it returns.
void stop(Side& side) {
  side.child().signal(SIGSTOP);
  ASSERT_TRUE(harness::wait_until([&] {
    std::ifstream file("/proc/" + std::to_string(side.child().pid()) + "/stat");
    std::string text;
    std::getline(file, text);
    return text.find(") T ") != std::string::npos;
  }));
}

class DeathMeeting : public ::testing::Test {
 protected:
  std::shared_ptr<harness::Session> session_ = std::make_shared<harness::Session>();
  Side here_{session_};
  RegionInfo memory_ = here_.allocate(MemoryKind::kMapped, 4096);
};

TEST_F(DeathMeeting, TheWiresClockStartsWhenTheProcessesHaveMet) {
  Link link;
  link.timeout = 14;  // 67 ms
  link.retry_count = 0;
  Side slow(kAnotherProcess);
  const QpInfo there = slow.create_qp();
  const RegionInfo to = slow.allocate(MemoryKind::kMapped, 4096);
  const QpInfo qp = here_.create_qp();
  ASSERT_NO_FATAL_FAILURE(stop(slow));
  here_.connect(qp, there, link);
  ASSERT_EQ(here_.post_send(qp, harness::send(1, harness::slice(memory_, 0, 8))).error, 0);
  // What it is told to do meanwhile it does first of all when it goes on.
  std::thread told([&] {
    slow.connect(there, qp, link);
    slow.post_receive(there, harness::receive(2, harness::slice(to, 0, 64)));
  });
  const auto start = Clock::now();
  bool early = false;
  while (Clock::now() - start < 4 * wire_time(link))
    early = early || !here_.poll_once(qp.send_cq, 1).empty();
  EXPECT_FALSE(early) << "the time of a living process ran out before it was met";
  slow.child().signal(SIGCONT);
  told.join();
  EXPECT_EQ(here_.poll_sends(qp, 1)[0].status, IBV_WC_SUCCESS);
}

/// A busy machine may stop us anywhere for longer than the wire's time, also between two looks at
/// the clock.
TEST_F(DeathMeeting, NobodysTimeRunsOutWhileHeIsStoppedHimself) {
  Link link;
  link.timeout = 8;  // 1 ms
  link.retry_count = 0;
  Side sender(kAnotherProcess);
  const RegionInfo from = sender.allocate(MemoryKind::kMapped, 4096);
  const QpInfo qp = sender.create_qp();
  Side slow(kAnotherProcess);
  const QpInfo there = slow.create_qp();
  const RegionInfo to = slow.allocate(MemoryKind::kMapped, 4096);
  slow.connect(there, qp);
  ASSERT_EQ(slow.post_receive(there, harness::receive(2, harness::slice(to, 0, 64))).error, 0);
  ASSERT_NO_FATAL_FAILURE(stop(slow));
  sender.connect(qp, there, link);
  ASSERT_EQ(sender.post_send(qp, harness::send(1, harness::slice(from, 0, 8))).error, 0);
  std::thread polling(
      [&] { EXPECT_EQ(sender.poll_sends(qp, 1)[0].status, IBV_WC_SUCCESS) << "it ran out"; });
  const auto for_a_while = [&](Clock::duration time) {
    for (const auto start = Clock::now(); Clock::now() - start < time + time / 4;) sched_yield();
  };
  // For half of the time that a process has to be met.
  const auto begun = Clock::now();
  while (Clock::now() - begun < std::chrono::seconds(2) && !HasFailure()) {
    ASSERT_NO_FATAL_FAILURE(stop(sender));
    for_a_while(wire_time(link));
    sender.child().signal(SIGCONT);
    for_a_while(std::chrono::microseconds(20));
  }
  slow.child().signal(SIGCONT);
  polling.join();
}

/// Two processes that have yet to meet.
class DeathMeetingLate : public ::testing::Test {
 protected:
  /// `to_` is stopped, or not even there, when the message is posted; then `from_` is, until after
  /// `time`, while `to_` is there, asks to connect and answers.
  void send_and_be_stopped(Clock::duration time, const Request& request, bool is_there) {
    ASSERT_NO_FATAL_FAILURE(stop(to_));
    // As long as its name is not there, it is as one that has yet to begin.
    char name[8];
    std::snprintf(name, sizeof name, "/q%03x", there_.qpn >> 12);
    const std::string path = getenv("VERBATIM_FABRIC") + std::string(name);
    if (!is_there) std::filesystem::rename(path, path + "-aside");
    from_.connect(here_, there_, link());
    const auto start = Clock::now();
    ASSERT_EQ(from_.post_send(here_, request).error, 0);
    ibv_wc_status status = IBV_WC_GENERAL_ERR;
    std::thread polling([&] { status = from_.poll_sends(here_, 1)[0].status; });
    std::this_thread::sleep_for(time / 4);  // it polls, and has time left
    stop(from_);
    const bool was_stopped_in_time = Clock::now() - start < time;
    if (!is_there) std::filesystem::rename(path + "-aside", path);
    to_.child().signal(SIGCONT);
    to_.post_send(asking_, harness::send(3, harness::slice(memory_there_, 0, 8)));
    std::this_thread::sleep_until(start + time + time / 2);
    from_.child().signal(SIGCONT);
    polling.join();
    if (!was_stopped_in_time) GTEST_SKIP() << "the machine is too busy to stop a process in time";
    ASSERT_EQ(status, IBV_WC_SUCCESS) << "it judged unheard";
    EXPECT_EQ(to_.poll_receives(there_, 1)[0].status, IBV_WC_SUCCESS) << "it was lost unheard";
  }
  void make_ends(ibv_qp_type type) {
    QpWish wish;
    wish.type = type;
    here_ = from_.create_qp(wish);
    there_ = to_.create_qp(wish);
    asking_ = to_.create_qp();
    to_.connect(asking_, from_.create_qp());
    to_.connect(there_, here_);
    ASSERT_EQ(
        to_.post_receive(there_, harness::receive(2, harness::slice(memory_there_, 0, 512))).error,
        0);
  }
  static Link link() {
    Link link;
    link.timeout = 18;  // 1.07 s
    link.retry_count = 0;
    return link;
  }

  Side from_{kAnotherProcess};
  Side to_{kAnotherProcess};
  RegionInfo memory_here_ = from_.allocate(MemoryKind::kMapped, 4096);
  RegionInfo memory_there_ = to_.allocate(MemoryKind::kMapped, 4096);
  QpInfo here_, there_, asking_;
};

/// Who was away so long that all time is over finds in his sockets what was said to him, and who is
/// there now: he reads before he judges.
TEST_F(DeathMeetingLate, WhoAskedAStoppedProcessToConnectIsThereAlsoWhenItsTimeIsOver) {
  ASSERT_NO_FATAL_FAILURE(make_ends(IBV_QPT_RC));
  send_and_be_stopped(wire_time(link()), harness::send(1, harness::slice(memory_here_, 0, 8)),
                      false);
}

TEST_F(DeathMeetingLate, WhoAnsweredAStoppedProcessGetsItsDatagramAlsoWhenItsTimeIsOver) {
  ASSERT_NO_FATAL_FAILURE(make_ends(IBV_QPT_UD));
  const std::int32_t ah = from_.call<&Endpoint::create_ah>(there_, 0);
  send_and_be_stopped(
      std::chrono::seconds(1),
      harness::datagram(1, harness::slice(memory_here_, 0, 8), ah, there_.qpn, Link{}.qkey), true);
}

TEST_F(DeathMeeting, AProcessThatIsNeverMetHasFourSecondsNotMore) {
  Link link;
  link.timeout = 9;  // 2 ms
  link.retry_count = 0;
  Side stopped(kAnotherProcess);
  const QpInfo there = stopped.create_qp();
  const QpInfo qp = here_.create_qp();
  ASSERT_NO_FATAL_FAILURE(stop(stopped));
  here_.connect(qp, there, link);
  const auto start = Clock::now();
  ASSERT_EQ(here_.post_send(qp, harness::send(1, harness::slice(memory_, 0, 8))).error, 0);
  EXPECT_EQ(here_.poll_sends(qp, 1)[0].status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(3900));
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
  stopped.child().signal(SIGCONT);
}

TEST_F(DeathMeeting, WhoIsDeadIsGivenTheWiresTimeAndNoMore) {
  Link link;
  link.timeout = 14;
  link.retry_count = 0;
  QpInfo there;
  {
    Side dead(kAnotherProcess);
    there = dead.create_qp();
    dead.child().kill_and_collect();
  }
  const QpInfo qp = here_.create_qp();
  here_.connect(qp, there, link);
  ASSERT_EQ(here_.post_receive(qp, harness::receive(2)).error, 0);
  const auto start = Clock::now();
  ASSERT_EQ(here_.post_send(qp, harness::send(1, harness::slice(memory_, 0, 8))).error, 0);
  EXPECT_EQ(here_.poll_sends(qp, 1)[0].status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_GE(Clock::now() - start, wire_time(link));
  EXPECT_EQ(here_.poll_receives(qp, 1)[0].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_LT(Clock::now() - start, wire_time(link) + std::chrono::milliseconds(700));
}

/// The stranger sends at the moment at which it knows us; by then we must know it.
TEST_F(DeathMeeting, TheFirstMessageOfAStrangerWakesWhoSleeps) {
  for (int round = 0; round < 40; ++round) {
    QpWish wish;
    wish.with_channel = 1;
    const QpInfo qp = here_.create_qp(wish);
    Side stranger(kAnotherProcess);
    const QpInfo there = stranger.create_qp();
    const RegionInfo from = stranger.allocate(MemoryKind::kOrdinary, 64);
    here_.connect(qp, there);
    ASSERT_EQ(here_.post_receive(qp, harness::receive(1, harness::slice(memory_, 0, 64))).error, 0);
    ASSERT_EQ(here_.call<&Endpoint::arm>(qp.receive_cq, 0), 0);
    stranger.connect(there, qp);
    stranger.fill(from, 0, 64, 7);
    ASSERT_EQ(stranger.post_send(there, harness::send(2, harness::slice(from, 0, 64))).error, 0);
    ASSERT_EQ(here_.call<&Endpoint::take_event>(qp.receive_cq, 5000), qp.receive_cq);
    EXPECT_EQ(here_.poll_receives(qp, 1, 1000)[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(here_.mismatch(memory_, 0, 64, 7), -1);
    EXPECT_EQ(here_.call<&Endpoint::destroy_qp>(qp.id), 0);
  }
}

/// A receive flushes late when its sender may still be met: who sleeps on it is woken then.
TEST_F(DeathMeeting, AReceiveThatFlushesLateWakesWhoSleeps) {
  Side stopped(kAnotherProcess);
  const QpInfo there = stopped.create_qp();
  ASSERT_NO_FATAL_FAILURE(stop(stopped));
  QpWish wish;
  wish.with_channel = 1;
  const QpInfo qp = here_.create_qp(wish);
  here_.connect(qp, there);
  ASSERT_EQ(here_.post_receive(qp, harness::receive(1)).error, 0);
  ASSERT_EQ(here_.to_state(qp, IBV_QPS_ERR), 0);
  auto flushed = here_.poll_once(qp.receive_cq, 1);
  while (flushed.empty()) {
    ASSERT_EQ(here_.call<&Endpoint::arm>(qp.receive_cq, 0), 0);
    flushed = here_.poll_once(qp.receive_cq, 1);
    if (!flushed.empty()) break;
    ASSERT_EQ(here_.call<&Endpoint::take_event>(qp.receive_cq, 5000), qp.receive_cq);
    flushed = here_.poll_once(qp.receive_cq, 1);
  }
  EXPECT_EQ(flushed[0].status, IBV_WC_WR_FLUSH_ERR);
  stopped.child().signal(SIGCONT);
}

}  // namespace
}  // namespace verbatim::death
