// SPDX-License-Identifier: BSD-2-Clause
//
// The same promises for very long: a million rounds of arming, polling and sleeping (IBTA 11.4.2.2;
// man ibv_req_notify_cq), in which a wakeup that is lost once would be seen.
#include <poll.h>

#include <atomic>
#include <thread>

#include "tests/support/device.hpp"
#include "tests/support/scale.hpp"

namespace verbatim::harness {
namespace {

class Long : public OnDevice {};
RUN_ON_EVERY_DEVICE(Long);

/// Some hundreds of nanoseconds, or none; another time with each call.
class Dawdle {
 public:
  explicit Dawdle(std::uint64_t seed) : random_(seed) {}
  void operator()() {
    random_ = random_ * 6364136223846793005 + 1442695040888963407;
    for (std::uint64_t turns = random_ >> 54; turns != 0; --turns) (void)here_.load();
  }

 private:
  std::uint64_t random_;
  std::atomic<bool> here_{false};
};

/// How far the sleeper is, for whoever is to wake it: numbers of rounds.
struct Progress {
  std::atomic<std::uint64_t> begun{0};   ///< is about to arm
  std::atomic<std::uint64_t> looked{0};  ///< has armed and found nothing, and goes to sleep
  std::atomic<bool> stop{false};
};

TEST_P(Long, NoWakeupIsLostInAMillionRounds) {
  const auto rounds = scaled_rounds<std::uint64_t>(1'000'000, 10'000);
  ibv_comp_channel* const told = channel();
  ibv_cq* const queue = cq(64, told);
  ibv_qp* const by = qp(IBV_QPT_RC, queue);
  ASSERT_EQ(lead(by, IBV_QPS_ERR), 0);
  Progress sleeper;
  // One completion for each round. Every second one comes when nothing but an event can end the
  // round; the others at any moment, before the arming too.
  std::thread waker([&] {
    Dawdle dawdle(1);
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      const std::atomic<std::uint64_t>& reached = round % 2 == 0 ? sleeper.looked : sleeper.begun;
      while (reached.load() < round) {
        if (sleeper.stop.load()) return;
        sched_yield();
      }
      dawdle();
      ASSERT_EQ(post_receive(by, round, nullptr, 0, 0), 0);
    }
  });
  Dawdle dawdle(2);
  std::uint64_t armings = 0, sleeps = 0, taken = 0;
  const auto take_all = [&] {
    ibv_wc wcs[2];
    int found;
    while ((found = ibv_poll_cq(queue, 2, wcs)) > 0) {
      EXPECT_EQ(found, 1) << "a completion of a round that has not begun";
      EXPECT_EQ(wcs[0].wr_id, ++taken);
    }
  };
  for (std::uint64_t round = 1; round <= rounds && !HasFailure(); ++round) {
    sleeper.begun = round;
    if (round % 2 != 0) dawdle();
    while (taken < round) {
      ASSERT_EQ(ibv_req_notify_cq(queue, 0), 0);
      ++armings;
      take_all();
      if (taken == round) break;
      sleeper.looked = round;
      pollfd wait{told->fd, POLLIN, 0};
      if (::poll(&wait, 1, kDefaultWaitMs) != 1) {
        ADD_FAILURE() << "no wakeup in round " << round;
        break;
      }
      ibv_cq* named = nullptr;
      void* cookie = nullptr;
      ASSERT_EQ(ibv_get_cq_event(told, &named, &cookie), 0);
      ibv_ack_cq_events(named, 1);
      // None when the event is of an earlier arming, whose round had found its completion itself.
      take_all();
      if (taken == round) ++sleeps;
    }
    if (taken < round) break;
  }
  sleeper.stop = true;
  waker.join();
  EXPECT_EQ(taken, rounds);
  EXPECT_GE(armings, rounds);
  EXPECT_GE(sleeps, rounds / 4) << "of " << armings << " armings";
  RecordProperty("armings", std::to_string(armings));
  RecordProperty("sleeps", std::to_string(sleeps));
}

}  // namespace
}  // namespace verbatim::harness
