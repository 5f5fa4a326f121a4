// SPDX-License-Identifier: BSD-2-Clause
// What ibv_post_send and ibv_post_recv write for the driver, field by field, and what they refuse.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "providers/siw/hot.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit_siw/fake_siw.hpp"

namespace verbatim::siw_test {
namespace {

class SiwSend : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(fake_.make_qp(), 0);
    fake_.connect();
  }
  void expect_refused(ibv_send_wr wr, int error = EINVAL) {
    const int rung = fake_.system.rung;
    const Posted posted = post(fake_, wr);
    EXPECT_EQ(posted.error, error);
    EXPECT_EQ(posted.bad, &wr);
    EXPECT_EQ(fake_.sent(0).flags, 0u) << "the kernel sees it";
    EXPECT_EQ(fake_.system.rung, rung);
  }
  FakeSiw fake_;
};

TEST_F(SiwSend, AWriteNamesItsTargetAndItsBuffersWithoutEmptyOnes) {
  ibv_sge list[4] = {{0x1000, 10, 1}, {0x2000, 0, 2}, {0x3000, 30, 3}, {0x4000, 0, 4}};
  Request request(IBV_WR_RDMA_WRITE);
  request.wr.sg_list = list;
  request.wr.num_sge = 4;
  request.wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
  ASSERT_EQ(post(fake_, request.wr).error, 0);
  const siw_sqe& sent = fake_.sent(0);
  EXPECT_EQ(sent.id, 42u);
  EXPECT_EQ(sent.flags, SIW_WQE_VALID | SIW_WQE_SIGNALLED | SIW_WQE_READ_FENCE);
  EXPECT_EQ(sent.opcode, SIW_OP_WRITE);
  EXPECT_EQ(sent.raddr, 0xabcdef0123456789u);
  EXPECT_EQ(sent.rkey, 0x99u);
  ASSERT_EQ(sent.num_sge, 2u);
  EXPECT_EQ(sent.sge[0].laddr, 0x1000u);
  EXPECT_EQ(sent.sge[1].laddr, 0x3000u);
  EXPECT_EQ(sent.sge[1].length, 30u);
  EXPECT_EQ(sent.sge[1].lkey, 3u);
  EXPECT_EQ(fake_.system.rung, 1);
}

TEST_F(SiwSend, InlineBytesAreCopiedWhereTheSecondBufferWouldBe) {
  char bytes[80];
  std::memset(bytes, 'x', sizeof bytes);
  Request request(IBV_WR_SEND, 80);
  request.sge.addr = reinterpret_cast<std::uintptr_t>(bytes);
  request.wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SOLICITED;
  ASSERT_EQ(post(fake_, request.wr).error, 0);
  const siw_sqe& sent = fake_.sent(0);
  EXPECT_EQ(sent.flags, SIW_WQE_VALID | SIW_WQE_INLINE | SIW_WQE_SOLICITED);
  EXPECT_EQ(sent.num_sge, 1u);
  EXPECT_EQ(sent.sge[0].length, 80u);
  EXPECT_EQ(std::memcmp(&sent.sge[1], bytes, 80), 0);
}

TEST_F(SiwSend, NothingInlineIsNoInlineMessage) {
  Request request(IBV_WR_SEND, 0);
  request.wr.send_flags = IBV_SEND_INLINE;
  ASSERT_EQ(post(fake_, request.wr).error, 0);
  EXPECT_EQ(fake_.sent(0).flags, unsigned{SIW_WQE_VALID});
  EXPECT_EQ(fake_.sent(0).num_sge, 0u);
}

TEST_F(SiwSend, AReadHasOnePlaceAndNoFence) {
  Request request(IBV_WR_RDMA_READ);
  request.wr.send_flags = IBV_SEND_FENCE;
  ASSERT_EQ(post(fake_, request.wr).error, 0);
  EXPECT_EQ(fake_.sent(0).opcode, SIW_OP_READ);
  EXPECT_EQ(fake_.sent(0).flags, unsigned{SIW_WQE_VALID}) << "the driver stops at a fenced one";
  EXPECT_EQ(fake_.sent(0).num_sge, 1u);
  ASSERT_EQ(post(fake_, request.wr).error, 0);
  EXPECT_EQ(fake_.system.asked, 1) << "once";
  ibv_sge two[2] = {request.sge, request.sge};
  request.wr.sg_list = two;
  request.wr.num_sge = 2;
  EXPECT_EQ(post(fake_, request.wr).error, EINVAL);
}

TEST_F(SiwSend, NoReadIsPostedThatTheConnectionDoesNotAllow) {
  fake_.system.reads = 0;
  expect_refused(Request(IBV_WR_RDMA_READ).wr);
}

TEST_F(SiwSend, AKeyToInvalidateTravelsAsItsOwn) {
  Request request(IBV_WR_SEND_WITH_INV);
  request.wr.invalidate_rkey = 0x4711;
  ASSERT_EQ(post(fake_, request.wr).error, 0);
  EXPECT_EQ(fake_.sent(0).opcode, SIW_OP_SEND_REMOTE_INV);
  EXPECT_EQ(fake_.sent(0).rkey, 0x4711u);
}

TEST_F(SiwSend, SignalsAllWhenMadeSo) {
  fake_.qp->sq_sig_all = true;
  Request request(IBV_WR_SEND);
  ASSERT_EQ(post(fake_, request.wr).error, 0);
  EXPECT_EQ(fake_.sent(0).flags, SIW_WQE_VALID | SIW_WQE_SIGNALLED);
}

TEST_F(SiwSend, RefusesWhatTheDriverWouldStopAt) {
  for (const ibv_wr_opcode opcode :
       {IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_ATOMIC_CMP_AND_SWP,
        IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_LOCAL_INV, IBV_WR_BIND_MW, IBV_WR_TSO}) {
    Request request(opcode);
    expect_refused(request.wr);
  }
  Request unknown(IBV_WR_SEND);
  const unsigned number = 99;
  std::memcpy(&unknown.wr.opcode, &number, sizeof number);
  expect_refused(unknown.wr);
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_READ, IBV_WR_SEND_WITH_INV}) {
    Request request(opcode);
    request.wr.send_flags = IBV_SEND_INLINE;
    expect_refused(request.wr);
  }
}

TEST_F(SiwSend, RefusesWhatDoesNotFit) {
  Request request(IBV_WR_SEND);
  request.wr.num_sge = 5;
  ibv_sge list[5] = {request.sge, request.sge, request.sge, request.sge, request.sge};
  request.wr.sg_list = list;
  expect_refused(request.wr);
  request.wr.num_sge = -1;
  expect_refused(request.wr);
  request.wr.num_sge = 1;
  request.wr.sg_list = nullptr;
  expect_refused(request.wr);
  request.wr.sg_list = list;
  request.wr.send_flags = 1u << 20;
  expect_refused(request.wr);
  list[0].length = 81;
  request.wr.send_flags = IBV_SEND_INLINE;
  expect_refused(request.wr);
  list[0].length = list[1].length = UINT32_MAX;
  request.wr.num_sge = 2;
  request.wr.send_flags = 0;
  expect_refused(request.wr);
}

TEST_F(SiwSend, AFullQueueNamesTheRequestThatFoundNoRoom) {
  Request request(IBV_WR_SEND);
  for (int i = 0; i < 8; ++i) ASSERT_EQ(post(fake_, request.wr).error, 0) << i;
  const Posted posted = post(fake_, request.wr);
  EXPECT_EQ(posted.error, ENOMEM);
  EXPECT_EQ(posted.bad, &request.wr);
  fake_.sent(0).flags = 0;
  EXPECT_EQ(post(fake_, request.wr).error, 0) << "the kernel took the oldest";
  EXPECT_NE(fake_.sent(0).flags, 0u);
}

TEST_F(SiwSend, OfAListTheGoodBeginningIsPostedAndTheBellRungOnce) {
  Request first(IBV_WR_SEND);
  Request second(IBV_WR_LOCAL_INV);
  first.wr.next = &second.wr;
  const Posted posted = post(fake_, first.wr);
  EXPECT_EQ(posted.error, EINVAL);
  EXPECT_EQ(posted.bad, &second.wr);
  EXPECT_NE(fake_.sent(0).flags, 0u);
  EXPECT_EQ(fake_.sent(1).flags, 0u);
  EXPECT_EQ(fake_.system.rung, 1);
}

// It lies in the ring, so it would be sent when anybody rings again.
TEST_F(SiwSend, WhatTheKernelDoesNotHearOfIsFlushedAndSentNoMore) {
  const unit::CapturedStderr says_why;
  fake_.system.bell = ENODEV;
  Request request(IBV_WR_SEND);
  ASSERT_EQ(post(fake_, request.wr).error, 0);
  ASSERT_EQ(fake_.system.led.size(), 1u);
  EXPECT_EQ(fake_.system.led[0].qp_state, IBV_QPS_ERR);
  EXPECT_EQ(fake_.sent(0).flags, 0u);
  ASSERT_EQ(fake_.poll(), 1);
  EXPECT_EQ(fake_.wc[0].wr_id, request.wr.wr_id);
  EXPECT_EQ(fake_.wc[0].status, IBV_WC_WR_FLUSH_ERR);
}

// write(2) is refused to who has changed his rights since, and an ioctl is not.
TEST_F(SiwSend, OfAProgramThatHasGivenUpItsRightsIsHeardByTheOtherWay) {
  fake_.system.bell = EACCES;
  Request request(IBV_WR_SEND);
  EXPECT_EQ(post(fake_, request.wr).error, 0);
  EXPECT_NE(fake_.sent(0).flags, 0u);
  EXPECT_EQ(fake_.system.rung_by_ioctl, std::vector<std::uint32_t>{fake_.qp->plain.handle});
  EXPECT_TRUE(fake_.system.led.empty());
}

class SiwReceive : public ::testing::Test {
 protected:
  int post_one(int sges) {
    ibv_recv_wr wr{};
    wr.wr_id = 7;
    wr.sg_list = list_;
    wr.num_sge = sges;
    ibv_recv_wr* bad = nullptr;
    const int error = siw::post_recv(&fake_.qp->plain, &wr, &bad);
    EXPECT_EQ(bad, error == 0 ? nullptr : &wr);
    return error;
  }
  ibv_sge list_[3] = {{0x1000, 10, 1}, {0x2000, 20, 2}, {}};
  FakeSiw fake_;
};

TEST_F(SiwReceive, NamesItsBuffersAndRingsNobody) {
  ASSERT_EQ(fake_.make_qp(), 0);
  ASSERT_EQ(post_one(2), 0);
  const siw_rqe& element = fake_.received(0);
  EXPECT_EQ(element.id, 7u);
  EXPECT_EQ(element.flags, unsigned{SIW_WQE_VALID});
  ASSERT_EQ(element.num_sge, 2u);
  EXPECT_EQ(element.sge[1].laddr, 0x2000u);
  EXPECT_EQ(element.sge[1].length, 20u);
  EXPECT_EQ(element.sge[1].lkey, 2u);
  EXPECT_EQ(fake_.system.rung, 0);
}

TEST_F(SiwReceive, RefusesWhatItCannotHoldAndWhereItCannotBe) {
  ASSERT_EQ(fake_.make_qp(), 0);
  EXPECT_EQ(post_one(-1), EINVAL);
  EXPECT_EQ(post_one(3), EINVAL);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(post_one(1), 0);
  EXPECT_EQ(post_one(1), ENOMEM);
  fake_.received(0).flags = 0;
  EXPECT_EQ(post_one(1), 0);
  fake_.qp->plain.state = IBV_QPS_RESET;
  EXPECT_EQ(post_one(1), EINVAL);
}

TEST_F(SiwReceive, ASharedQueueTakesThemInsteadOfTheQueuePairs) {
  ASSERT_EQ(fake_.make_srq(), 0);
  ASSERT_EQ(fake_.make_qp({0x11, 8, 0, 0, FakeSiw::kSends, 0}), 0);
  EXPECT_EQ(post_one(1), EINVAL) << "there is no queue";
  ibv_recv_wr wr{};
  wr.wr_id = 9;
  wr.sg_list = list_;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  for (unsigned i = 0; i < 4; ++i) {
    ASSERT_EQ(siw::post_srq_recv(&fake_.srq->plain, &wr, &bad), 0);
    EXPECT_EQ(fake_.shared(i).id, 9u);
  }
  EXPECT_EQ(siw::post_srq_recv(&fake_.srq->plain, &wr, &bad), ENOMEM);
  EXPECT_EQ(bad, &wr);
}

}  // namespace
}  // namespace verbatim::siw_test
