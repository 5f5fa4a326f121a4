// SPDX-License-Identifier: BSD-2-Clause
//
// Events that are held back, as shm does it (providers/shm/moderation.hpp), beyond what every
// device promises (../conformance/cq_moderation_test.cpp): what is counted, and who is woken
// meanwhile.
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "tests/shm/cq_told.hpp"

namespace verbatim::harness {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint16_t kLongest = 0xffff;
constexpr auto kPeriod = std::chrono::microseconds(kLongest);

int moderate(ibv_cq* cq, std::uint16_t count, std::uint16_t period_us) {
  ibv_modify_cq_attr change{};
  change.attr_mask = IBV_CQ_ATTR_MODERATE;
  change.moderate.cq_count = count;
  change.moderate.cq_period = period_us;
  return ibv_modify_cq(cq, &change);
}

class Moderated : public ::testing::Test {
 protected:
  /// Messages of a process that has not been met yet cannot be counted.
  void SetUp() override {
    come(1);
    take_all(1);
  }
  /// What comes: sends of `b` that lie in a's ring when this returns.
  void come(int messages, unsigned flags = 0) {
    for (int i = 0; i < messages; ++i) {
      told_.post(1);
      expect_posted(pair_.b.post_send(told_.qb, send(1, slice(told_.at_b, 0, 8)).with(flags)));
      told_.sent();
    }
  }
  /// The same in one list.
  void come_together(std::uint32_t messages) {
    told_.post(messages);
    expect_posted(pair_.b.post_send(
        told_.qb, std::vector<Request>(messages, send(1, slice(told_.at_b, 0, 8)))));
    pair_.b.poll_sends(told_.qb, messages);
  }
  void take_all(int messages) {
    for (int i = 0; i < messages; ++i) told_.take();
  }
  void arm(int solicited_only = 0) { ASSERT_EQ(ibv_req_notify_cq(told_.cq, solicited_only), 0); }
  bool told() { return is_readable(channel_.get(), 0); }
  /// Says that nothing was told yet, unless the period is over.
  void expect_silence_since(Clock::time_point start) {
    const bool too_soon = told();
    if (Clock::now() - start < kPeriod) {
      EXPECT_FALSE(too_soon);
    }
  }
  void expect_told() {
    ASSERT_TRUE(is_readable(channel_.get(), kDefaultWaitMs)) << "no event came";
    EXPECT_EQ(get(channel_.get()), told_.cq);
  }
  /// Calls `round`, with events after so many messages, until one of them took less time than the
  /// longest period: on a busy machine one may say nothing, and leave an event behind.
  template <class F>
  void until_in_time(std::uint16_t count, F round) {
    for (int i = 0; i < 200 && !HasFatalFailure(); ++i) {
      ASSERT_EQ(moderate(told_.cq, 0, 0), 0);
      while (told()) EXPECT_EQ(get(channel_.get()), told_.cq);
      ASSERT_EQ(moderate(told_.cq, count, kLongest), 0);
      const auto start = Clock::now();
      round(start);
      if (Clock::now() - start < kPeriod) return;
    }
    FAIL() << "no round ended before the period";
  }

  Pair pair_{kApart};
  ChannelHandle channel_{ibv_create_comp_channel(pair_.a.here().context())};
  Told told_{pair_, channel_.get()};
};

TEST_F(Moderated, AQueueWakesWhoSleepsInTheChannel) {
  ASSERT_EQ(moderate(told_.cq, 3, kLongest), 0);
  for (int round = 0; round < 50; ++round) {
    arm();
    std::thread reader([&] { EXPECT_EQ(get(channel_.get()), told_.cq); });
    come(3);
    reader.join();
    take_all(3);
  }
}

TEST_F(Moderated, SendersWakeNobodyWhileTheEventIsHeldBack) {
  constexpr int kMessages = 60;
  come(4);  // they have met
  take_all(4);
  ASSERT_EQ(moderate(told_.cq, kMessages, kLongest), 0);
  arm();
  const std::uint64_t before = sleeps_of_service_thread();
  const auto start = Clock::now();
  come(kMessages);
  expect_told();
  const auto sweeps = (Clock::now() - start) / std::chrono::milliseconds(50) + 1;
  // It looks 16 times in the period.
  EXPECT_LT(sleeps_of_service_thread() - before, 24 + 2 * static_cast<std::uint64_t>(sweeps));
  take_all(kMessages);
}

TEST_F(Moderated, MessagesFromBeforeTheArmingAreNotCounted) {
  until_in_time(3, [&](Clock::time_point start) {
    come(4);
    arm();
    come(2);
    expect_silence_since(start);
    come(1);
    expect_told();
    take_all(7);
  });
}

TEST_F(Moderated, EachMessageOfAListIsCounted) {
  until_in_time(12, [&](Clock::time_point start) {
    come_together(9);
    arm();
    come_together(7);
    come_together(4);
    expect_silence_since(start);
    come(1);
    expect_told();
    take_all(21);
  });
}

TEST_F(Moderated, MessagesThatWereTakenAreCounted) {
  until_in_time(3, [&](Clock::time_point start) {
    come(4);
    arm();
    take_all(4);  // as every program does after arming
    come(1);
    take_all(1);
    come(1);
    expect_silence_since(start);
    come(1);
    expect_told();
    take_all(2);
  });
}

TEST_F(Moderated, ArmedForSolicitedItCountsThose) {
  until_in_time(2, [&](Clock::time_point start) {
    arm(1);
    come(3);
    come(1, IBV_SEND_SOLICITED);
    come(1);
    expect_silence_since(start);
    come(1, IBV_SEND_SOLICITED);
    expect_told();
    take_all(6);
  });
}

TEST_F(Moderated, OrdinaryMessagesStartNoPeriodForSolicitedOnes) {
  ASSERT_EQ(moderate(told_.cq, 2, 50), 0);
  arm(1);
  const auto start = Clock::now();
  come(3);
  ASSERT_TRUE(wait_until([&] { return Clock::now() - start > std::chrono::milliseconds(20); }));
  EXPECT_FALSE(told());
  come(1, IBV_SEND_SOLICITED);
  expect_told();
  take_all(4);
}

TEST_F(Moderated, ArmedAgainWhileItHoldsTheEventBackTellsOnce) {
  until_in_time(2, [&](Clock::time_point start) {
    arm();
    come(1);
    arm();
    expect_silence_since(start);
    come(1);
    expect_told();
    EXPECT_FALSE(told());
    take_all(2);
  });
}

TEST_F(Moderated, ArmedForAllWhileItHoldsASolicitedOneBackCountsAll) {
  until_in_time(3, [&](Clock::time_point start) {
    arm(1);
    come(1, IBV_SEND_SOLICITED);
    arm();
    come(1);
    expect_silence_since(start);
    come(1);
    expect_told();
    take_all(3);
  });
}

TEST_F(Moderated, AnErrorIsToldAtOnce) {
  ASSERT_EQ(moderate(told_.cq, 100, kLongest), 0);
  QpWish wish;
  wish.send_cq = wish.receive_cq = told_.cq_id;
  const QpInfo fails = pair_.add_qps(wish, {}).first;
  ASSERT_EQ(pair_.a.to_state(fails, IBV_QPS_ERR), 0);
  for (int round = 0; round < 20; ++round) {
    arm();
    come(1);
    if (round % 2 == 0)
      expect_posted(pair_.a.post_receive(fails, receive(1)));
    else
      expect_posted(pair_.a.post_send(fails, send(1, slice(told_.at_a, 0, 8))));
    EXPECT_TRUE(told()) << "round " << round;
    expect_told();
    const std::vector<ibv_wc> both = pair_.a.poll_receives(told_.qa, 2);
    EXPECT_NE(both[0].status, both[1].status);
  }
  EXPECT_EQ(pair_.a.here().destroy_qp(fails.id), 0);
}

TEST_F(Moderated, TurnedOffItTellsAtOnceOfWhatItHeldBack) {
  QpWish wish;
  wish.send_cq = told_.cq_id;
  const QpInfo sends = pair_.add_qps(wish, {}).first;
  const auto complete = [&] {
    expect_posted(pair_.a.post_send(sends, write(1, slice(told_.at_a, 0, 8), told_.at_b)));
  };
  complete();  // from now on one is performed as it is posted
  EXPECT_EQ(pair_.a.poll_sends(sends, 1)[0].status, IBV_WC_SUCCESS);
  ASSERT_EQ(moderate(told_.cq, 100, kLongest), 0);
  arm();
  complete();
  ASSERT_EQ(moderate(told_.cq, 0, 0), 0);
  EXPECT_TRUE(told());
  expect_told();
  EXPECT_EQ(pair_.a.poll_sends(sends, 1)[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(pair_.a.here().destroy_qp(sends.id), 0);
}

TEST_F(Moderated, WithoutACountOrWithoutAPeriodNothingIsHeldBack) {
  for (const auto& [count, period] : {std::pair{2, 0}, {0, 100}, {1, 100}}) {
    ASSERT_EQ(
        moderate(told_.cq, static_cast<std::uint16_t>(count), static_cast<std::uint16_t>(period)),
        0);
    for (int i = 0; i < 20; ++i) {
      arm();
      come(1);
      expect_told();
      take_all(1);
    }
  }
}

TEST_F(Moderated, ModeratedAfterItWasArmedItHoldsTheEventBack) {
  until_in_time(0, [&](Clock::time_point start) {
    arm();
    ASSERT_EQ(moderate(told_.cq, 2, kLongest), 0);
    come(1);
    expect_silence_since(start);
    come(1);
    expect_told();
    take_all(2);
  });
}

TEST_F(Moderated, AShorterPeriodEndsTheOneUnderWay) {
  until_in_time(100, [&](Clock::time_point start) {
    arm();
    come(1);
    expect_silence_since(start);
    ASSERT_EQ(moderate(told_.cq, 100, 10), 0);
    expect_told();
    take_all(1);
  });
}

TEST_F(Moderated, AQueueThatHoldsItsEventBackCanBeDestroyed) {
  auto other = std::make_unique<Told>(pair_, channel_.get());
  ASSERT_EQ(moderate(other->cq, 100, kLongest), 0);
  ASSERT_EQ(ibv_req_notify_cq(other->cq, 0), 0);
  other->post(1);
  other->come();
  other->sent();
  other.reset();
  // Its looks go on to find that it is gone; others are told as ever.
  ASSERT_EQ(moderate(told_.cq, 100, 1000), 0);
  arm();
  come(1);
  expect_told();
  take_all(1);
  EXPECT_FALSE(told());
}

}  // namespace
}  // namespace verbatim::harness
