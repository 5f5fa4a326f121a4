// SPDX-License-Identifier: BSD-2-Clause
// Receives, posted to a queue pair and to a shared queue.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "providers/rxe/hot.hpp"
#include "tests/unit_rxe/fake_rxe.hpp"

namespace verbatim::rxe_test {
namespace {

class RxeReceive : public ::testing::Test {
 protected:
  ibv_recv_wr request(int sges) {
    ibv_recv_wr wr{};
    wr.wr_id = 42;
    wr.sg_list = list_;
    wr.num_sge = sges;
    return wr;
  }
  int post(ibv_recv_wr& wr) { return rxe::post_recv(fake_.plain(), &wr, &bad_); }

  ibv_sge list_[5] = {{0x1000, 10, 1}, {0x2000, 20, 2}, {0x3000, 30, 3}, {0x4000, 40, 4}, {}};
  FakeQp fake_;
  ibv_recv_wr* bad_ = nullptr;
};

TEST_F(RxeReceive, NamesItsBuffersAndRingsNobody) {
  ibv_recv_wr wr = request(3);
  ASSERT_EQ(post(wr), 0);
  const unsigned char* const element = fake_.receive.head();
  ASSERT_NE(element, nullptr);
  const SentView view(element);
  EXPECT_EQ(view.wr_id(), 42u);
  EXPECT_EQ(view.u32(16), 60u) << "length";
  EXPECT_EQ(view.u32(20), 60u) << "left of it";
  EXPECT_EQ(view.u32(24), 0u);
  EXPECT_EQ(view.u32(28), 3u);
  EXPECT_EQ(view.u32(32), 0u);
  EXPECT_EQ(std::memcmp(element + 40, list_, 3 * sizeof(ibv_sge)), 0);
  EXPECT_EQ(fake_.system.rung, 0);
}

TEST_F(RxeReceive, RefusesWhatItCannotHold) {
  for (const int sges : {-1, 5}) {
    ibv_recv_wr wr = request(sges);
    EXPECT_EQ(post(wr), EINVAL) << sges;
    EXPECT_EQ(bad_, &wr);
  }
  ibv_recv_wr wr = request(1);
  wr.sg_list = nullptr;
  EXPECT_EQ(post(wr), EINVAL);
  EXPECT_EQ(fake_.receive.head(), nullptr);
}

TEST_F(RxeReceive, IsRefusedInResetAndTakenFromInitOn) {
  fake_.qp->plain.state = IBV_QPS_RESET;
  ibv_recv_wr wr = request(1);
  EXPECT_EQ(post(wr), EINVAL);
  EXPECT_EQ(bad_, &wr);
  fake_.qp->plain.state = IBV_QPS_INIT;
  EXPECT_EQ(post(wr), 0);
  EXPECT_EQ(fake_.system.rung, 0);
}

// The kernel looks for receives when a message comes, and in ERR none does.
TEST_F(RxeReceive, InErrorTheKernelIsLedToErrorAgainSoThatItFlushes) {
  fake_.qp->plain.state = IBV_QPS_ERR;
  ibv_recv_wr wr = request(1);
  EXPECT_EQ(post(wr), 0);
  ASSERT_EQ(fake_.system.led.size(), 1u);
  EXPECT_EQ(fake_.system.led[0].qp_handle, 77u);
  EXPECT_EQ(fake_.system.led[0].attr_mask, unsigned{IBV_QP_STATE});
  EXPECT_EQ(fake_.system.led[0].qp_state, IBV_QPS_ERR);
  fake_.qp->plain.state = IBV_QPS_RTS;
  EXPECT_EQ(post(wr), 0);
  EXPECT_EQ(fake_.system.led.size(), 1u);
}

// The kernel leads queue pairs to ERR by itself, and a program that posts sees that in completions.
TEST_F(RxeReceive, AfterTroubleTheKernelIsAskedOnceWhereTheQueuePairIs) {
  ibv_recv_wr wr = request(1);
  EXPECT_EQ(post(wr), 0);
  EXPECT_EQ(fake_.system.asked, 0);
  fake_.context.troubles.fetch_add(1);  // somebody else's
  EXPECT_EQ(post(wr), 0);
  EXPECT_EQ(post(wr), 0);
  EXPECT_EQ(fake_.system.asked, 1);
  EXPECT_TRUE(fake_.system.led.empty());
  fake_.context.troubles.fetch_add(2);
  fake_.system.state = IBV_QPS_ERR;
  EXPECT_EQ(post(wr), 0);
  EXPECT_EQ(fake_.qp->plain.state, IBV_QPS_ERR);
  ASSERT_EQ(fake_.system.led.size(), 1u) << "it is led to ERR again, and flushes";
  EXPECT_EQ(post(wr), 0);
  EXPECT_EQ(fake_.system.asked, 2);
  EXPECT_EQ(fake_.system.led.size(), 2u);
}

TEST_F(RxeReceive, HasNoQueueOfItsOwnBesideASharedOne) {
  fake_.qp->receive_ring.unmap();
  ibv_recv_wr wr = request(1);
  EXPECT_EQ(post(wr), EINVAL);
  EXPECT_EQ(bad_, &wr);
}

TEST_F(RxeReceive, OfAListTheGoodBeginningIsPosted) {
  ibv_recv_wr list[9];
  for (int i = 0; i < 9; ++i) {
    list[i] = request(1);
    list[i].next = i < 8 ? &list[i + 1] : nullptr;
  }
  EXPECT_EQ(post(list[0]), ENOMEM);
  EXPECT_EQ(bad_, &list[7]) << "seven fit";
}

TEST_F(RxeReceive, ASharedQueueTakesTheSame) {
  FakeRing ring(2, 7);
  rxe::Srq srq;
  srq.max_sge = 4;
  ASSERT_EQ(srq.ring.map(ring.fd(), ring.place(), sizeof(rxe::ReceiveElement)), 0);
  ibv_recv_wr wr = request(2);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(rxe::post_srq_recv(&srq.plain, &wr, &bad_), 0);
  EXPECT_EQ(rxe::post_srq_recv(&srq.plain, &wr, &bad_), ENOMEM);
  EXPECT_EQ(bad_, &wr);
  EXPECT_EQ(SentView(ring.head()).u32(16), 30u);
}

}  // namespace
}  // namespace verbatim::rxe_test
