// SPDX-License-Identifier: BSD-2-Clause
//
// Completion channels: an armed CQ wakes its owner once, a solicited arm only for solicited
// messages or errors, and no wakeup is lost (IBTA 11.4.2.2).
#include <fcntl.h>

#include <cerrno>
#include <future>

#include "tests/support/device.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/quirks.hpp"
#include "tests/support/scale.hpp"

namespace verbatim::harness {
namespace {

class RcEvent : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcEvent, on_every_device(each_way_and_two_contexts()));

PairWish with_channels() {
  PairWish wish;
  wish.a.with_channel = 1;
  wish.b.with_channel = 1;
  return wish;
}

struct Scene {
  Pair pair;
  RegionInfo from;
  RegionInfo to;
  explicit Scene(Setting setting)
      : pair(setting, with_channels()),
        from(pair.a.allocate(setting.memory, 64)),
        to(pair.b.allocate(setting.memory, 64)) {}

  void deliver(std::uint64_t number, unsigned flags = 0) {
    expect_posted(pair.b.post_receive(pair.qb, receive(number, slice(to, 0, 64))));
    expect_posted(pair.a.post_send(pair.qa, send(number, slice(from, 0, 16)).with(flags)));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], number, IBV_WC_SEND, pair.qa);
  }
  void arm(bool solicited_only) {
    ASSERT_EQ(pair.b.call<&Endpoint::arm>(pair.qb.receive_cq, solicited_only ? 1 : 0), 0);
  }
  int await_event() {
    return pair.b.call<&Endpoint::take_event>(pair.qb.receive_cq, kDefaultWaitMs);
  }
  bool pending() { return pair.b.call<&Endpoint::event_pending>(pair.qb.receive_cq); }
};

TEST_P(RcEvent, AnArmedQueueTellsOfTheNextCompletionOnce) {
  Scene scene(GetParam());
  scene.arm(false);
  EXPECT_FALSE(scene.pending());
  scene.deliver(1);
  EXPECT_EQ(scene.await_event(), scene.pair.qb.receive_cq);
  // It was disarmed by that: the next completion makes no event.
  scene.deliver(2);
  const auto got = scene.pair.b.poll_receives(scene.pair.qb, 2);
  expect_receive(got[0], 1, 16, scene.pair.qb);
  expect_receive(got[1], 2, 16, scene.pair.qb);
  EXPECT_FALSE(scene.pending());
  scene.arm(false);
  scene.deliver(3);
  EXPECT_EQ(scene.await_event(), scene.pair.qb.receive_cq);
  expect_receive(scene.pair.b.poll_receives(scene.pair.qb, 1)[0], 3, 16, scene.pair.qb);
}

TEST_P(RcEvent, AnUnarmedQueueTellsNothing) {
  Scene scene(GetParam());
  scene.deliver(1);
  expect_receive(scene.pair.b.poll_receives(scene.pair.qb, 1)[0], 1, 16, scene.pair.qb);
  EXPECT_FALSE(scene.pending());
}

TEST_P(RcEvent, SendCompletionsTellTheSender) {
  Scene scene(GetParam());
  Pair& pair = scene.pair;
  for (const Request& request :
       {write(1, slice(scene.from, 0, 8), scene.to), read(1, slice(scene.from, 0, 8), scene.to),
        fetch_add(1, slice(scene.from, 0, 8), scene.to, 0, 1)}) {
    SCOPED_TRACE(request.opcode);
    ASSERT_EQ(pair.a.call<&Endpoint::arm>(pair.qa.send_cq, 0), 0);
    expect_posted(pair.a.post_send(pair.qa, request));
    EXPECT_EQ(pair.a.call<&Endpoint::take_event>(pair.qa.send_cq, kDefaultWaitMs), pair.qa.send_cq);
    EXPECT_EQ(pair.a.poll_sends(pair.qa, 1)[0].status, IBV_WC_SUCCESS);
  }
}

TEST_P(RcEvent, ASenderThatWaitedForAReceiveIsToldWithoutPolling) {
  PairWish wish = with_channels();
  wish.link_b.min_rnr_timer = 1;
  Pair pair(GetParam(), wish);
  const RegionInfo from = pair.a.allocate(GetParam().memory, 64);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 64);
  ASSERT_EQ(pair.a.call<&Endpoint::arm>(pair.qa.send_cq, 0), 0);
  expect_posted(pair.a.post_send(pair.qa, send(1, slice(from, 0, 64))));
  expect_posted(pair.b.post_receive(pair.qb, receive(2, slice(to, 0, 64))));
  EXPECT_EQ(pair.a.call<&Endpoint::take_event>(pair.qa.send_cq, kDefaultWaitMs), pair.qa.send_cq);
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_SEND, pair.qa);
  expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 2, 64, pair.qb);
}

TEST_P(RcEvent, ASolicitedArmWaitsForASolicitedMessage) {
  Scene scene(GetParam());
  for (int round = 0; round < 10; ++round) {
    scene.arm(true);
    scene.deliver(1);
    expect_receive(scene.pair.b.poll_receives(scene.pair.qb, 1)[0], 1, 16, scene.pair.qb);
    EXPECT_FALSE(scene.pending());
    scene.deliver(2, IBV_SEND_SOLICITED);
    EXPECT_EQ(scene.await_event(), scene.pair.qb.receive_cq);
    expect_receive(scene.pair.b.poll_receives(scene.pair.qb, 1)[0], 2, 16, scene.pair.qb);
  }
}

TEST_P(RcEvent, ASolicitedWriteWithImmediateTells) {
  Scene scene(GetParam());
  Pair& pair = scene.pair;
  scene.arm(true);
  expect_posted(pair.b.post_receive(pair.qb, receive(1)));
  expect_posted(pair.a.post_send(
      pair.qa, write(2, slice(scene.from, 0, 8), scene.to).with_imm(1).with(IBV_SEND_SOLICITED)));
  EXPECT_EQ(scene.await_event(), pair.qb.receive_cq);
  EXPECT_EQ(pair.b.poll_receives(pair.qb, 1)[0].status, IBV_WC_SUCCESS);
  pair.a.poll_sends(pair.qa, 1);
}

TEST_P(RcEvent, AnErrorTellsEvenThoseWhoWaitForSolicitedOnes) {
  Scene scene(GetParam());
  SKIP_IF(quirk_of(scene.pair.qb.vendor, kFlushedIsNotSolicited));
  expect_posted(scene.pair.b.post_receive(scene.pair.qb, receive(1)));
  scene.arm(true);
  ASSERT_EQ(scene.pair.b.to_state(scene.pair.qb, IBV_QPS_ERR), 0);
  EXPECT_EQ(scene.await_event(), scene.pair.qb.receive_cq);
  expect_error(scene.pair.b.poll_receives(scene.pair.qb, 1)[0], 1, IBV_WC_WR_FLUSH_ERR,
               scene.pair.qb);
}

TEST_P(RcEvent, ManyMessagesMakeOneEvent) {
  Scene scene(GetParam());
  scene.arm(false);
  for (std::uint64_t i = 0; i < 20; ++i) scene.deliver(i);
  EXPECT_EQ(scene.await_event(), scene.pair.qb.receive_cq);
  EXPECT_EQ(scene.pair.b.poll_receives(scene.pair.qb, 20).size(), 20u);
  EXPECT_FALSE(scene.pending());
}

TEST_P(RcEvent, AQueueThatIsPolledForLongAfterArmingStillTells) {
  constexpr std::uint32_t kBurst = 100;  // more polls than a CQ in event use has before it heats
  Scene scene(GetParam());
  const std::int32_t cq = scene.pair.qb.receive_cq;
  for (std::uint32_t i = 0; i < kBurst; ++i) scene.deliver(i);
  scene.arm(false);
  std::uint32_t taken = 0;
  while (!scene.pair.b.call<&Endpoint::poll_once>(cq, 1u).empty()) ++taken;
  EXPECT_EQ(taken, kBurst);
  scene.deliver(kBurst);
  EXPECT_EQ(scene.await_event(), cq);
}

TEST_P(RcEvent, AMessageThatIsPolledAtOnceTellsAllTheSame) {
  // IBTA 11.4.2.2: the event is for the completion that is added, whoever polls it; adapters raise
  // it when they write the entry.
  Scene scene(GetParam());
  for (std::uint64_t round = 0; round < 200; ++round) {
    const bool solicited = round % 2 != 0;
    scene.arm(solicited);
    scene.deliver(round, solicited ? unsigned{IBV_SEND_SOLICITED} : 0u);
    expect_receive(scene.pair.b.poll_receives(scene.pair.qb, 1)[0], round, 16, scene.pair.qb);
    ASSERT_EQ(scene.await_event(), scene.pair.qb.receive_cq) << "round " << round;
  }
}

TEST_P(RcEvent, ArmedBeforeWhatItToldOfIsPolledNothingIsToldTwice) {
  // perftest's -e: an event, the arming, one completion. A second event for that one would send it
  // on without the other side's answer.
  Scene scene(GetParam());
  const auto arm_sends = [&] {
    ASSERT_EQ(scene.pair.a.call<&Endpoint::arm>(scene.pair.qa.send_cq, 0), 0);
  };
  for (std::uint64_t round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    scene.arm(false);
    arm_sends();
    expect_posted(scene.pair.b.post_receive(scene.pair.qb, receive(round, slice(scene.to, 0, 64))));
    expect_posted(scene.pair.a.post_send(scene.pair.qa, send(round, slice(scene.from, 0, 16))));
    EXPECT_EQ(scene.await_event(), scene.pair.qb.receive_cq);
    EXPECT_EQ(scene.pair.a.call<&Endpoint::take_event>(scene.pair.qa.send_cq, kDefaultWaitMs),
              scene.pair.qa.send_cq);
    scene.arm(false);
    arm_sends();
    expect_receive(scene.pair.b.poll_receives(scene.pair.qb, 1)[0], round, 16, scene.pair.qb);
    expect_wc(scene.pair.a.poll_sends(scene.pair.qa, 1)[0], round, IBV_WC_SEND, scene.pair.qa);
    EXPECT_FALSE(scene.pending());
    EXPECT_FALSE(scene.pair.a.call<&Endpoint::event_pending>(scene.pair.qa.send_cq));
  }
}

TEST_P(RcEvent, NotToldOfAMessageThatLiesUnsolicitedWhenSolicitedOnesAreAskedFor) {
  Scene scene(GetParam());
  SKIP_IF(quirk_of(scene.pair.qb.vendor, kArmedTellsOfLaterOnesOnly));
  scene.deliver(1);
  scene.arm(true);
  EXPECT_FALSE(scene.pending());
  scene.deliver(2, IBV_SEND_SOLICITED);
  EXPECT_EQ(scene.await_event(), scene.pair.qb.receive_cq);
  scene.arm(true);
  EXPECT_EQ(scene.await_event(), scene.pair.qb.receive_cq) << "2 lies there";
  EXPECT_EQ(scene.pair.b.poll_receives(scene.pair.qb, 2).size(), 2u);
  scene.arm(true);
  EXPECT_FALSE(scene.pending());
}

TEST_P(RcEvent, NoWakeupIsLostIn10000Rounds) {
  const std::uint32_t rounds = scaled_rounds(10'000u, 500u);
  Pair pair(GetParam(), with_channels());
  // Rounds of one side begin with a message: its first receives must stand before.
  auto at_b = std::async(std::launch::async, [&] {
    pair.b.call<&Endpoint::ping_pong_by_events>(pair.qb.id, rounds, 8, false);
  });
  pair.a.call<&Endpoint::ping_pong_by_events>(pair.qa.id, rounds, 8, true);
  at_b.get();
}

TEST_P(RcEvent, WhoFindsAMessageUnfinishedIsToldWhenItIsWhole) {
  constexpr std::uint32_t kRounds = 20;
  constexpr std::uint32_t kBytes = 1u << 20;
  Pair pair(GetParam(), with_channels());
  auto at_b = std::async(std::launch::async, [&] {
    pair.b.call<&Endpoint::ping_pong_by_events>(pair.qb.id, kRounds, kBytes, false);
  });
  pair.a.call<&Endpoint::ping_pong_by_events>(pair.qa.id, kRounds, kBytes, true);
  at_b.get();
}

TEST_P(RcEvent, AnEmptyNonBlockingChannelAnswersEagain) {
  Scene scene(GetParam());
  ibv_comp_channel* channel = scene.pair.a.here().cq(scene.pair.qa.receive_cq)->channel;
  const int flags = fcntl(channel->fd, F_GETFL);
  ASSERT_EQ(fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK), 0);
  ibv_cq* cq = nullptr;
  void* cookie = nullptr;
  EXPECT_EQ(ibv_get_cq_event(channel, &cq, &cookie), -1);
  EXPECT_EQ(errno, EAGAIN);
}

}  // namespace
}  // namespace verbatim::harness
