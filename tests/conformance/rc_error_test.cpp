// SPDX-License-Identifier: BSD-2-Clause
//
// How a connection ends while both processes live, and what stands on both sides of that moment
// (IBTA 10.3.1, 9.9.2, 9.9.3, 10.10.3; man ibv_modify_qp, ibv_poll_cq). What each fault ends in,
// and what becomes of the rest: rc_fault_*_test.cpp.
#include "tests/support/expect.hpp"

namespace verbatim::harness {
namespace {

class RcError : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcError, on_every_device(each_way()));

/// Nobody answers after little: two tries, 4 ms apart.
Link short_timeout() {
  Link link;
  link.timeout = 10;
  link.retry_count = 1;
  return link;
}

TEST_P(RcError, TheErrorStateFlushesBothQueuesInTheirOrder) {
  // IBTA 10.3.1, the error state: what is in a queue completes in error, flushed.
  constexpr std::uint32_t kCount = 20;
  Pair pair(GetParam());
  const RegionInfo memory = pair.a.allocate(GetParam().memory, 4096);
  std::vector<Receive> receives;
  std::vector<Request> sends;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    receives.push_back(receive(100 + i, slice(memory, 0, 64)));
    // `b` has no receives: these wait. Flushed ones complete whether signaled or not.
    sends.push_back(send(i, slice(memory, 0, 8)).unsignaled());
  }
  expect_posted(pair.a.post_receive(pair.qa, receives));
  expect_posted(pair.a.post_send(pair.qa, sends));
  ASSERT_EQ(pair.a.to_state(pair.qa, IBV_QPS_ERR), 0);
  const auto sent = pair.a.poll_sends(pair.qa, kCount);
  const auto got = pair.a.poll_receives(pair.qa, kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) {
    expect_error(sent[i], i, IBV_WC_WR_FLUSH_ERR, pair.qa);
    expect_error(got[i], 100 + i, IBV_WC_WR_FLUSH_ERR, pair.qa);
  }
  EXPECT_EQ(pair.a.state(pair.qa), IBV_QPS_ERR);
}

TEST_P(RcError, WhatIsPostedInTheErrorStateIsFlushedToo) {
  // IBTA 10.3.1, the error state: posting is no error of the verb.
  Pair pair(GetParam());
  const RegionInfo memory = pair.a.allocate(GetParam().memory, 4096);
  ASSERT_EQ(pair.a.to_state(pair.qa, IBV_QPS_ERR), 0);
  expect_posted(pair.a.post_receive(pair.qa, receive(1, slice(memory, 0, 64))));
  expect_posted(pair.a.post_send(pair.qa, send(2, slice(memory, 0, 64))));
  expect_error(pair.a.poll_receives(pair.qa, 1)[0], 1, IBV_WC_WR_FLUSH_ERR, pair.qa);
  expect_error(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_WR_FLUSH_ERR, pair.qa);
}

TEST_P(RcError, AReceiveThatWasPostedBeforeTheFailureWasSeenIsFlushedToo) {
  // IBTA 9.9.2, 10.10.3.
  PairWish wish;
  wish.a.with_channel = 1;
  Pair pair(GetParam(), wish);
  const RegionInfo memory = pair.a.allocate(GetParam().memory, 64);
  Slice wrong = slice(memory, 0, 8);
  wrong.lkey ^= 0x80000000u;
  ASSERT_EQ(pair.a.call<&Endpoint::arm>(pair.qa.send_cq, 0), 0);
  expect_posted(pair.a.post_send(pair.qa, send(1, wrong)));
  ASSERT_EQ(pair.a.call<&Endpoint::take_event>(pair.qa.send_cq, kDefaultWaitMs), pair.qa.send_cq);
  expect_posted(pair.a.post_receive(pair.qa, receive(2, slice(memory, 0, 64))));
  expect_error(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_LOC_PROT_ERR, pair.qa);
  expect_error(pair.a.poll_receives(pair.qa, 1)[0], 2, IBV_WC_WR_FLUSH_ERR, pair.qa);
}

TEST_P(RcError, WhatCompletedBeforeTheErrorStaysASuccess) {
  // IBTA 10.8.5.1, 10.10.3.
  Pair pair(GetParam());
  const RegionInfo from = pair.a.allocate(GetParam().memory, 64);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 64);
  expect_posted(pair.b.post_receive(
      pair.qb, std::vector{receive(1, slice(to, 0, 8)), receive(2, slice(to, 8, 8))}));
  expect_posted(pair.a.post_send(pair.qa, send(3, slice(from, 0, 8))));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 3, IBV_WC_SEND, pair.qa);
  // It has arrived: its receive is used up, although nobody has polled it.
  ASSERT_EQ(pair.b.to_state(pair.qb, IBV_QPS_ERR), 0);
  const auto got = pair.b.poll_receives(pair.qb, 2);
  expect_receive(got[0], 1, 8, pair.qb);
  expect_error(got[1], 2, IBV_WC_WR_FLUSH_ERR, pair.qb);
}

TEST_P(RcError, APeerConnectedToSomebodyElseDoesNotAnswer) {
  // IBTA 9.6 has such packets dropped without a word; 9.7.6.1.3 what the requester takes it for.
  Pair pair(GetParam());
  const RegionInfo from = pair.a.allocate(GetParam().memory, 64);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 64);
  const QpInfo intruder = pair.a.create_qp();
  pair.a.connect(intruder, pair.qb, short_timeout());
  expect_posted(pair.a.post_send(intruder, write(1, slice(from, 0, 8), to)));
  expect_error(pair.a.poll_sends(intruder, 1)[0], 1, IBV_WC_RETRY_EXC_ERR, intruder);
  expect_untouched(pair.b, to, 0, 64, 0);
  // And the rightful connection goes on.
  expect_posted(pair.a.post_send(pair.qa, write(2, slice(from, 0, 8), to)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_RDMA_WRITE, pair.qa);
}

TEST_P(RcError, AReceiverThatIsReadyLaterGetsTheSendThenWithoutLoss) {
  // IBTA 9.7.5.2.8, man ibv_modify_qp: rnr_retry 7 is for ever; the receiver's timer asks for 0.01
  // ms.
  constexpr std::uint32_t kSends = 50;
  PairWish wish;
  wish.link_b.min_rnr_timer = 1;
  Pair pair(GetParam(), wish);
  const RegionInfo from = pair.a.allocate(GetParam().memory, kSends * 64);
  const RegionInfo to = pair.b.allocate(GetParam().memory, kSends * 64);
  pair.a.fill(from, 0, kSends * 64, 3);
  std::vector<Request> sends;
  for (std::uint32_t i = 0; i < kSends; ++i) sends.push_back(send(i, slice(from, i * 64, 64)));
  expect_posted(pair.a.post_send(pair.qa, sends));
  EXPECT_TRUE(pair.a.poll_once(pair.qa.send_cq, 1).empty());
  for (std::uint32_t i = 0; i < kSends; ++i) {
    expect_posted(pair.b.post_receive(pair.qb, receive(i, slice(to, i * 64, 64))));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], i, IBV_WC_SEND, pair.qa);
    expect_receive(pair.b.poll_receives(pair.qb, 1)[0], i, 64, pair.qb);
  }
  EXPECT_EQ(pair.b.mismatch(to, 0, kSends * 64, 3), -1);
}

TEST_P(RcError, AfterResetTheSameQueuePairsConnectAgain) {
  // IBTA 10.3.1.1.
  Pair pair(GetParam());
  const RegionInfo from = pair.a.allocate(GetParam().memory, 4096);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 4096);
  for (std::uint32_t round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    // Leave things in the queues that the reset must forget.
    expect_posted(pair.b.post_receive(
        pair.qb, std::vector{receive(1, slice(to, 0, 1024)), receive(2, slice(to, 0, 1024))}));
    pair.a.fill(from, 0, 1024, round);
    expect_posted(pair.a.post_send(pair.qa, send(3, slice(from, 0, 1024))));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 3, IBV_WC_SEND, pair.qa);
    expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 1, 1024, pair.qb);
    EXPECT_EQ(pair.b.mismatch(to, 0, 1024, round), -1);
    if (round % 2 == 0) {
      ASSERT_EQ(pair.a.to_state(pair.qa, IBV_QPS_ERR), 0);
    }
    pair.reconnect();
    EXPECT_TRUE(pair.b.poll_once(pair.qb.receive_cq, 8).empty());
    EXPECT_TRUE(pair.a.poll_once(pair.qa.send_cq, 8).empty());
  }
}

TEST_P(RcError, AReceiveOfAnEarlierLifeIsNoReceive) {
  // IBTA 10.3.1.1: the reset takes away what was posted.
  constexpr std::uint32_t kReceives = 40;
  PairWish wish;
  wish.link_a.rnr_retry = 0;
  wish.b.receive_depth = 64;
  Pair pair(GetParam(), wish);
  const RegionInfo memory = pair.a.allocate(GetParam().memory, 64);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 64);
  const auto message = [&](std::uint32_t id) { return send(id, slice(memory, 0, 8)); };
  std::vector<Receive> receives(kReceives, receive(1, slice(to, 0, 64)));
  expect_posted(pair.b.post_receive(pair.qb, receives));
  for (std::uint32_t i = 0; i < kReceives / 2; ++i) {
    expect_posted(pair.a.post_send(pair.qa, message(1)));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_SEND, pair.qa);
    expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 1, 8, pair.qb);
  }
  pair.reconnect();
  expect_posted(pair.b.post_receive(pair.qb, receive(2, slice(to, 0, 64))));
  expect_posted(pair.a.post_send(pair.qa, message(2)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_SEND, pair.qa);
  expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 2, 8, pair.qb);
  expect_posted(pair.a.post_send(pair.qa, message(3)));
  expect_error(pair.a.poll_sends(pair.qa, 1)[0], 3, IBV_WC_RNR_RETRY_EXC_ERR, pair.qa);
}

TEST_P(RcError, AMessageLongerThanItsReceiveFailsBehindOthersThatFitted) {
  // IBTA 9.7.5.2.8, 9.9.3. Sent one by one, and as one list.
  constexpr std::uint32_t kFit = 10;
  for (const bool in_list : {false, true}) {
    SCOPED_TRACE(in_list);
    PairWish wish;
    wish.a.send_depth = wish.b.receive_depth = 64;
    Pair pair(GetParam(), wish);
    const RegionInfo from = pair.a.allocate(GetParam().memory, 64);
    const RegionInfo to = pair.b.allocate(GetParam().memory, 64);
    std::vector<Receive> receives;
    for (std::uint32_t i = 0; i < 40; ++i) receives.push_back(receive(i, slice(to, 0, 8)));
    expect_posted(pair.b.post_receive(pair.qb, receives));
    std::vector<Request> sends;
    for (std::uint32_t i = 0; i < kFit; ++i) sends.push_back(send(i, slice(from, 0, 8)));
    sends.push_back(send(kFit, slice(from, 0, 9)));
    if (in_list) {
      expect_posted(pair.a.post_send(pair.qa, sends));
    } else {
      for (const Request& each : sends) expect_posted(pair.a.post_send(pair.qa, each));
    }
    const auto sent = pair.a.poll_sends(pair.qa, kFit + 1);
    const auto got = pair.b.poll_receives(pair.qb, kFit + 1);
    for (std::uint32_t i = 0; i < kFit; ++i) {
      expect_wc(sent[i], i, IBV_WC_SEND, pair.qa);
      expect_receive(got[i], i, 8, pair.qb);
    }
    expect_error(sent[kFit], kFit, IBV_WC_REM_INV_REQ_ERR, pair.qa);
    expect_error(got[kFit], kFit, IBV_WC_LOC_LEN_ERR, pair.qb);
  }
}

}  // namespace
}  // namespace verbatim::harness
