// SPDX-License-Identifier: BSD-2-Clause
// IBTA 10.3.1.5, send queue drain: what has begun is finished, what lies behind it waits for RTS.
#include "tests/support/expect.hpp"

namespace verbatim::harness {
namespace {

class Drain : public ::testing::TestWithParam<Setting> {
 protected:
  void drain() {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_SQD;
    attr.en_sqd_async_notify = 1;
    ASSERT_EQ(pair_.a.call<&Endpoint::modify_qp>(pair_.qa.id, attr,
                                                 int{IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY}),
              0);
  }
  bool is_draining() { return pair_.a.call<&Endpoint::query_qp>(pair_.qa.id).sq_draining != 0; }
  void expect_drained() {
    const AsyncEvent event = pair_.a.take_async_event();
    EXPECT_EQ(event.type, IBV_EVENT_SQ_DRAINED);
    EXPECT_EQ(event.qp, pair_.qa.id);
    EXPECT_FALSE(is_draining());
  }
  void expect_no_event() { EXPECT_EQ(pair_.a.take_async_event(0).type, -1); }

  Pair pair_{GetParam()};
  RegionInfo from_ = pair_.a.allocate(GetParam().memory, 1_MiB);
  RegionInfo to_ = pair_.b.allocate(GetParam().memory, 1_MiB);
};
RUN_OVER_SETTINGS(Drain, each_way());

TEST_P(Drain, WhatLiesBehindARequestThatHasBegunWaitsUntilItSendsAgain) {
  expect_posted(
      pair_.a.post_send(pair_.qa, {send(1, slice(from_, 0, 8)), send(2, slice(from_, 0, 8))}));
  drain();
  EXPECT_TRUE(is_draining());
  expect_no_event();
  expect_posted(pair_.b.post_receive(
      pair_.qb, std::vector{receive(3, slice(to_, 0, 8)), receive(4, slice(to_, 0, 8))}));
  expect_wc(pair_.a.poll_sends(pair_.qa, 1)[0], 1, IBV_WC_SEND, pair_.qa);
  expect_drained();
  expect_receive(pair_.b.poll_receives(pair_.qb, 1)[0], 3, 8, pair_.qb);
  EXPECT_TRUE(pair_.a.poll_once(pair_.qa.send_cq, 1).empty());
  EXPECT_TRUE(pair_.b.poll_once(pair_.qb.receive_cq, 1).empty());
  ASSERT_EQ(pair_.a.to_state(pair_.qa, IBV_QPS_RTS), 0);
  expect_wc(pair_.a.poll_sends(pair_.qa, 1)[0], 2, IBV_WC_SEND, pair_.qa);
  expect_receive(pair_.b.poll_receives(pair_.qb, 1)[0], 4, 8, pair_.qb);
  expect_no_event();
}

TEST_P(Drain, AMessageOfManyPiecesArrivesWhole) {
  pair_.a.fill(from_, 0, 1_MiB, 5);
  expect_posted(pair_.b.post_receive(pair_.qb, receive(1, slice(to_, 0, 1_MiB))));
  expect_posted(pair_.a.post_send(pair_.qa, send(2, slice(from_, 0, 1_MiB))));
  drain();
  expect_receive(pair_.b.poll_receives(pair_.qb, 1)[0], 1, 1_MiB, pair_.qb);
  expect_wc(pair_.a.poll_sends(pair_.qa, 1)[0], 2, IBV_WC_SEND, pair_.qa);
  expect_drained();
  EXPECT_EQ(pair_.b.mismatch(to_, 0, 1_MiB, 5), -1);
}

TEST_P(Drain, AReadArrivesWhole) {
  pair_.b.fill(to_, 0, 1_MiB, 6);
  expect_posted(pair_.a.post_send(pair_.qa, read(1, slice(from_, 0, 1_MiB), to_)));
  drain();
  expect_wc(pair_.a.poll_sends(pair_.qa, 1)[0], 1, IBV_WC_RDMA_READ, pair_.qa);
  expect_drained();
  EXPECT_EQ(pair_.a.mismatch(from_, 0, 1_MiB, 6), -1);
}

TEST_P(Drain, ARequestThatFailsMeanwhileIsAnErrorAndNoEndOfTheDrain) {
  expect_posted(pair_.a.post_send(pair_.qa, send(1, slice(from_, 0, 9))));
  drain();
  expect_posted(pair_.b.post_receive(pair_.qb, receive(2, slice(to_, 0, 8))));
  expect_error(pair_.a.poll_sends(pair_.qa, 1)[0], 1, IBV_WC_REM_INV_REQ_ERR, pair_.qa);
  EXPECT_EQ(pair_.a.state(pair_.qa), IBV_QPS_ERR);
  EXPECT_FALSE(is_draining());
  expect_no_event();
}

TEST_P(Drain, ADrainThatAResetCutShortIsForgotten) {
  expect_posted(pair_.a.post_send(pair_.qa, send(1, slice(from_, 0, 8))));
  drain();
  pair_.reconnect();
  drain();
  expect_drained();
  expect_no_event();
}

}  // namespace
}  // namespace verbatim::harness
