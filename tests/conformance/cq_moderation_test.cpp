// SPDX-License-Identifier: BSD-2-Clause
//
// Events that are held back until there are several completions, or for some time: man
// ibv_modify_cq. That nothing is told too soon can only be seen in less time than the device waits
// at most, which a busy machine may not have: then a round says nothing, and the next one is asked.
#include <poll.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <tuple>

#include "tests/support/device.hpp"

namespace verbatim::harness {
namespace {

using Clock = std::chrono::steady_clock;

class CqModeration : public OnDevice {
 protected:
  static constexpr int kRounds = 200;  ///< one of so many is not disturbed

  void SetUp() override {
    ibv_device_attr_ex extended{};
    ASSERT_EQ(ibv_query_device_ex(context(), nullptr, &extended), 0);
    most_ = extended.cq_mod_caps;
    told_ = channel();
    queue_ = cq(256, told_);
    SKIP_IF(unless_unsupported("ibv_modify_cq", moderate(most_.max_cq_count, most_.max_cq_period)));
    ASSERT_GE(most_.max_cq_count, 4);
    ASSERT_GE(most_.max_cq_period, 1000);
    sent_ = cq();
    from_ = qp(IBV_QPT_RC, sent_);
    to_ = qp(IBV_QPT_RC, queue_);
    ASSERT_EQ(lead(from_, IBV_QPS_RTS, to_), 0);
    ASSERT_EQ(lead(to_, IBV_QPS_RTS, from_), 0);
  }
  int moderate(std::uint16_t count, std::uint16_t period_us) {
    ibv_modify_cq_attr change{};
    change.attr_mask = IBV_CQ_ATTR_MODERATE;
    change.moderate.cq_count = count;
    change.moderate.cq_period = period_us;
    return ibv_modify_cq(queue_, &change);
  }
  /// Messages: for each the completion of a receive.
  void complete(int messages = 1) {
    for (int i = 0; i < messages; ++i) {
      ASSERT_EQ(post_receive(to_, 1, nullptr, 0, 0), 0);
      ASSERT_EQ(post_send(from_, 2, nullptr, 0, 0), 0);
      poll(sent_, 1);
    }
  }
  bool readable(int wait_ms = 0) {
    pollfd wait{told_->fd, POLLIN, 0};
    return ::poll(&wait, 1, wait_ms) == 1;
  }
  void take() {
    ASSERT_TRUE(readable(kDefaultWaitMs)) << "no event came";
    ibv_cq* named = nullptr;
    void* cookie = nullptr;
    ASSERT_EQ(ibv_get_cq_event(told_, &named, &cookie), 0);
    EXPECT_EQ(named, queue_);
    ibv_ack_cq_events(queue_, 1);
  }
  /// Calls `round` until one of them took less time than the longest period.
  template <class F>
  void until_in_time(F round) {
    for (int i = 0; i < kRounds && !HasFatalFailure(); ++i) {
      const auto start = Clock::now();
      round();
      if (Clock::now() - start < std::chrono::microseconds(most_.max_cq_period)) return;
    }
    FAIL() << "none of " << kRounds << " rounds ended before the period";
  }
  /// Nothing is told of `messages`; then of `more`, in less than the period.
  template <class F>
  void expect_told_with(int messages, int more, std::size_t completions, F complete_so_many) {
    until_in_time([&] {
      const auto start = Clock::now();
      ASSERT_EQ(ibv_req_notify_cq(queue_, 0), 0);
      complete_so_many(messages);
      const bool told = readable();
      if (Clock::now() - start < std::chrono::microseconds(most_.max_cq_period)) {
        EXPECT_FALSE(told) << "too soon";
      }
      complete_so_many(more);
      take();
      poll(queue_, completions);
    });
  }
  void expect_told_with(int messages, int more) {
    expect_told_with(messages, more, static_cast<std::size_t>(messages + more),
                     [&](int so_many) { complete(so_many); });
  }

  ibv_cq_moderation_caps most_{};
  ibv_comp_channel* told_ = nullptr;
  ibv_cq* queue_ = nullptr;
  ibv_cq* sent_ = nullptr;
  ibv_qp* from_ = nullptr;
  ibv_qp* to_ = nullptr;
};
RUN_ON_EVERY_DEVICE(CqModeration);

TEST_P(CqModeration, TellsWhenAsManyHaveComeAsWereAskedFor) {
  ASSERT_EQ(moderate(4, most_.max_cq_period), 0);
  expect_told_with(3, 1);
}

TEST_P(CqModeration, CountsSendsAndReceives) {
  ASSERT_EQ(moderate(4, most_.max_cq_period), 0);
  ibv_qp* from;
  ibv_qp* to;
  std::tie(from, to) = connected(IBV_QPT_RC, queue_);
  expect_told_with(1, 1, 4, [&](int messages) {
    for (int i = 0; i < messages; ++i) {
      ASSERT_EQ(post_receive(to, 1, nullptr, 0, 0), 0);
      ASSERT_EQ(post_send(from, 2, nullptr, 0, 0), 0);
    }
  });
}

TEST_P(CqModeration, CountsAnewWheneverItIsArmed) {
  ASSERT_EQ(moderate(3, most_.max_cq_period), 0);
  for (int i = 0; i < 20 && !HasFatalFailure(); ++i) expect_told_with(2, 1);
}

TEST_P(CqModeration, TellsOfFewerWhenThePeriodIsOver) {
  ASSERT_EQ(moderate(most_.max_cq_count, 100), 0);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(ibv_req_notify_cq(queue_, 0), 0);
    complete();
    take();
    poll(queue_, 1);
  }
}

TEST_P(CqModeration, TellsOnceForEachArming) {
  ASSERT_EQ(moderate(2, 1000), 0);
  ASSERT_EQ(ibv_req_notify_cq(queue_, 0), 0);
  complete(6);
  take();
  poll(queue_, 6);
  EXPECT_FALSE(readable());
}

TEST_P(CqModeration, TurnedOffTellsOfEach) {
  for (const std::uint16_t count : {std::uint16_t{0}, std::uint16_t{1}}) {
    ASSERT_EQ(moderate(4, most_.max_cq_period), 0);
    ASSERT_EQ(moderate(count, 0), 0);
    until_in_time([&] {
      ASSERT_EQ(ibv_req_notify_cq(queue_, 0), 0);
      complete();
      take();
      poll(queue_, 1);
    });
  }
}

TEST_P(CqModeration, TurnedOffTellsOfWhatItHeldBack) {
  until_in_time([&] {
    ASSERT_EQ(moderate(4, most_.max_cq_period), 0);
    ASSERT_EQ(ibv_req_notify_cq(queue_, 0), 0);
    complete();
    ASSERT_EQ(moderate(0, 0), 0);
    take();
    poll(queue_, 1);
  });
}

TEST_P(CqModeration, LosesNoWakeupInAThousandRounds) {
  constexpr int kAll = 1000;
  ASSERT_EQ(moderate(3, 200), 0);
  std::atomic<int> asked{0};
  const auto messages = [](int round) { return round % 5 + 1; };
  std::thread completer([&] {
    for (int round = 1; round <= kAll; ++round) {
      if (!wait_until([&] { return asked >= round; })) return;
      complete(messages(round));
    }
  });
  for (int round = 1; round <= kAll && !HasFatalFailure(); ++round) {
    EXPECT_EQ(ibv_req_notify_cq(queue_, 0), 0);
    asked = round;
    take();
    poll(queue_, static_cast<std::size_t>(messages(round)));
  }
  asked = kAll;
  completer.join();
}

}  // namespace
}  // namespace verbatim::harness
