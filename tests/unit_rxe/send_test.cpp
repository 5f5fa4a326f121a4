// SPDX-License-Identifier: BSD-2-Clause
// What ibv_post_send writes for the kernel, field by field, and what it refuses.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "providers/rxe/hot.hpp"
#include "providers/rxe/queue_pairs.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit_rxe/fake_rxe.hpp"

namespace verbatim::rxe_test {
namespace {

class RxeSend : public ::testing::Test {
 protected:
  void use(ibv_qp_type type) { fake_ = std::make_unique<FakeQp>(type); }
  int post(ibv_send_wr& wr) {
    bad_ = nullptr;
    return rxe::post_send(fake_->plain(), &wr, &bad_);
  }
  /// Posts one and looks at it as the kernel would.
  SentView sent(ibv_send_wr& wr) {
    EXPECT_EQ(post(wr), 0);
    unsigned char* const element = fake_->send.head();
    EXPECT_NE(element, nullptr);
    return SentView(element != nullptr ? element : fake_->send.slot(0));
  }
  ibv_send_wr request(ibv_wr_opcode opcode, int sges = 1) {
    ibv_send_wr wr{};
    wr.wr_id = 0x1122334455667788;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = list_;
    wr.num_sge = sges;
    return wr;
  }
  ibv_send_wr unknown() {
    ibv_send_wr wr = request(IBV_WR_SEND);
    const unsigned opcode = 99;
    std::memcpy(&wr.opcode, &opcode, sizeof opcode);
    return wr;
  }
  void expect_refused(ibv_send_wr wr, int error = EINVAL) {
    const int rung = fake_->system.rung;
    EXPECT_EQ(post(wr), error);
    EXPECT_EQ(bad_, &wr);
    EXPECT_EQ(fake_->send.head(), nullptr) << "the kernel sees it";
    EXPECT_EQ(fake_->system.rung, rung);
  }

  char bytes_[256] = "some bytes of a message";
  ibv_sge list_[5] = {{reinterpret_cast<std::uintptr_t>(bytes_), 10, 0x11},
                      {reinterpret_cast<std::uintptr_t>(bytes_) + 10, 6, 0x22},
                      {reinterpret_cast<std::uintptr_t>(bytes_) + 16, 0, 0x33},
                      {reinterpret_cast<std::uintptr_t>(bytes_) + 16, 100, 0x44},
                      {reinterpret_cast<std::uintptr_t>(bytes_), 1, 0x55}};
  std::unique_ptr<FakeQp> fake_ = std::make_unique<FakeQp>();
  ibv_send_wr* bad_ = nullptr;
};

TEST_F(RxeSend, AWriteNamesItsTargetAndItsBuffers) {
  ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, 4);
  wr.wr.rdma = {0xabcdef0123456789, 0x99};
  const SentView view = sent(wr);
  EXPECT_EQ(view.wr_id(), 0x1122334455667788u);
  EXPECT_EQ(view.opcode(), 0u);
  EXPECT_EQ(view.flags(), unsigned{IBV_SEND_SIGNALED});
  EXPECT_EQ(view.u64(24), 0xabcdef0123456789u);
  EXPECT_EQ(view.u32(32), 0x99u);
  EXPECT_EQ(view.iova(), 0xabcdef0123456789u);
  EXPECT_EQ(view.length(), 116u);
  EXPECT_EQ(view.resid(), 116u);
  EXPECT_EQ(view.sges(), 4u);
  EXPECT_EQ(std::memcmp(view.tail(), list_, 4 * sizeof(ibv_sge)), 0);
  for (std::size_t at = 144; at < 152; at += 4) EXPECT_EQ(view.u32(at), 0u) << "status and state";
  for (std::size_t at = 160; at < 184; at += 4) EXPECT_EQ(view.u32(at), 0u) << at;
  EXPECT_EQ(view.u32(192), 0u) << "the first SGE";
  EXPECT_EQ(view.u32(200), 0u) << "from its first byte";
}

TEST_F(RxeSend, RingsOnceForAListWithTheQueuePairsHandle) {
  ibv_send_wr second = request(IBV_WR_SEND);
  ibv_send_wr first = request(IBV_WR_SEND, 0);
  first.next = &second;
  EXPECT_EQ(post(first), 0);
  EXPECT_EQ(fake_->system.rung, 1);
  EXPECT_EQ(fake_->system.last.header.command, unsigned{IB_USER_VERBS_CMD_POST_SEND});
  EXPECT_EQ(fake_->system.last.qp_handle, 77u);
  EXPECT_EQ(fake_->system.last.wr_count, 0u);
}

TEST_F(RxeSend, InlineBytesAreCopiedAtOnce) {
  ibv_send_wr wr = request(IBV_WR_SEND, 2);
  wr.send_flags |= IBV_SEND_INLINE;
  const SentView view = sent(wr);
  std::memset(bytes_, 'x', sizeof bytes_);
  EXPECT_EQ(std::memcmp(view.tail(), "some bytes of a ", 16), 0);
  EXPECT_EQ(view.length(), 16u);
  EXPECT_EQ(view.resid(), 16u);
  EXPECT_EQ(view.sges(), 0u);
  EXPECT_NE(view.flags() & IBV_SEND_INLINE, 0u);
}

TEST_F(RxeSend, ImmediateDataAndKeysGoInTheirPlace) {
  ibv_send_wr wr = request(IBV_WR_SEND_WITH_IMM);
  wr.imm_data = htonl(0xdecade);
  EXPECT_EQ(sent(wr).imm(), htonl(0xdecade));
  fake_->send.consume();
  wr = request(IBV_WR_SEND_WITH_INV);
  wr.invalidate_rkey = 0x4711;
  EXPECT_EQ(sent(wr).imm(), 0x4711u);
  fake_->send.consume();
  wr = request(IBV_WR_LOCAL_INV, 0);
  wr.invalidate_rkey = 0x4712;
  const SentView view = sent(wr);
  EXPECT_EQ(view.imm(), 0x4712u);
  EXPECT_EQ(view.length(), 0u);
}

TEST_F(RxeSend, AtomicsBringEightBytesBackHoweverLongTheBuffer) {
  ibv_send_wr wr = request(IBV_WR_ATOMIC_CMP_AND_SWP);
  wr.wr.atomic = {0x1000, 5, 6, 0x99};
  const SentView view = sent(wr);
  EXPECT_EQ(view.opcode(), 5u);
  EXPECT_EQ(view.iova(), 0x1000u);
  EXPECT_EQ(view.u64(24), 0x1000u);
  EXPECT_EQ(view.u64(32), 5u);
  EXPECT_EQ(view.u64(40), 6u);
  EXPECT_EQ(view.u32(48), 0x99u);
  EXPECT_EQ(view.length(), 8u);
  list_[0].length = 7;
  fake_->send.consume();
  expect_refused(wr);
}

TEST_F(RxeSend, ADatagramNamesItsAddressHandleByTheKernelsNumber) {
  use(IBV_QPT_UD);
  rxe::Ah ah;
  ah.number = 1234;
  ibv_send_wr wr = request(IBV_WR_SEND);
  wr.wr.ud = {&ah.plain, 0xff000123, 0x11111111};
  const SentView view = sent(wr);
  EXPECT_EQ(view.u32(24), 0x123u) << "24 bits";
  EXPECT_EQ(view.u32(28), 0x11111111u);
  EXPECT_EQ(view.u32(32), 0u);
  EXPECT_EQ(view.u32(36), 1234u);
  fake_->send.consume();
  wr.wr.ud.ah = nullptr;
  expect_refused(wr);
}

TEST_F(RxeSend, AKeyWithTheHighestBitStandsForTheSendersOwn) {
  use(IBV_QPT_UD);
  fake_->qp->qkey = 0x42;
  rxe::Ah ah;
  ah.number = 1;
  ibv_send_wr wr = request(IBV_WR_SEND);
  wr.wr.ud = {&ah.plain, 1, 0x80000077};
  EXPECT_EQ(sent(wr).u32(28), 0x42u);
}

TEST_F(RxeSend, ADatagramIsNoLongerThanThePath) {
  use(IBV_QPT_UD);
  fake_->qp->max_datagram = 100;
  rxe::Ah ah;
  ah.number = 1;
  list_[0].length = 101;
  ibv_send_wr wr = request(IBV_WR_SEND);
  wr.wr.ud = {&ah.plain, 1, 1};
  expect_refused(wr);
  list_[0].length = 100;
  EXPECT_EQ(sent(wr).length(), 100u);
}

TEST_F(RxeSend, BindingNamesBothKeysOfTheWindow) {
  ibv_mr mr{};
  mr.lkey = 0x77;
  Mw mw;
  mw.plain.rkey = 0x100;
  ibv_mw_bind bind{};
  bind.wr_id = 9;
  bind.bind_info = {&mr, 0x5000, 64, IBV_ACCESS_REMOTE_READ};
  ASSERT_EQ(rxe::bind_mw(*fake_->qp, mw, bind), 0);
  const SentView view(fake_->send.head());
  EXPECT_EQ(view.opcode(), 8u);
  EXPECT_EQ(view.u64(24), 0x5000u);
  EXPECT_EQ(view.u64(32), 64u);
  EXPECT_EQ(view.u32(40), 0x77u);
  EXPECT_EQ(view.u32(44), 0x100u) << "the key that it has";
  EXPECT_EQ(view.u32(48), 0x101u) << "the key that it gets";
  EXPECT_EQ(view.u32(52), unsigned{IBV_ACCESS_REMOTE_READ});
  EXPECT_EQ(mw.plain.rkey, 0x101u);
  fake_->send.consume();
  bind.bind_info.mr = nullptr;
  EXPECT_EQ(rxe::bind_mw(*fake_->qp, mw, bind), EINVAL);
  EXPECT_EQ(mw.plain.rkey, 0x101u) << "refused: it keeps its key";
}

TEST_F(RxeSend, BindsWhatIsOfOneDomainOnly) {
  ibv_pd own{}, other{};
  ibv_mr mr{};
  Mw mw;
  ibv_send_wr wr = request(IBV_WR_BIND_MW, 0);
  wr.bind_mw.mw = &mw.plain;
  wr.bind_mw.rkey = 0x101;
  wr.bind_mw.bind_info = {&mr, 0x5000, 64, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_HUGETLB};
  for (const ibv_mw_type type : {IBV_MW_TYPE_1, IBV_MW_TYPE_2}) {
    mw.plain.type = type;
    mw.plain.pd = fake_->qp->plain.pd = &own;
    mr.pd = &other;
    expect_refused(wr);
    mr.pd = &own;
    mw.plain.pd = &other;
    expect_refused(wr);
    mr.pd = &other;  // both: the queue pair is the one that is not
    expect_refused(wr);
    mr.pd = mw.plain.pd = &own;
    mw.plain.rkey = 0x100;
    const SentView view = sent(wr);
    EXPECT_EQ(view.opcode(), 8u);
    EXPECT_EQ(view.u32(44), 0x100u) << "the key that it has";
    EXPECT_EQ(view.u32(52), unsigned{IBV_ACCESS_REMOTE_READ}) << "what only regions have is not";
    EXPECT_EQ(mw.plain.rkey, 0x101u) << "and has from now on, of either type";
    fake_->send.consume();
  }
  fake_->qp->plain.pd = nullptr;
}

TEST_F(RxeSend, RefusesWhatItsTypeHasNot) {
  for (const ibv_wr_opcode opcode : {IBV_WR_TSO, IBV_WR_DRIVER1, IBV_WR_FLUSH, IBV_WR_ATOMIC_WRITE})
    expect_refused(request(opcode));
  expect_refused(unknown());
  use(IBV_QPT_UC);
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
                                     IBV_WR_LOCAL_INV, IBV_WR_SEND_WITH_INV, IBV_WR_BIND_MW})
    expect_refused(request(opcode, 0));
  use(IBV_QPT_UD);
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ})
    expect_refused(request(opcode));
}

TEST_F(RxeSend, RefusesWhatDoesNotFit) {
  expect_refused(request(IBV_WR_SEND, 5));
  expect_refused(request(IBV_WR_SEND, -1));
  ibv_send_wr wr = request(IBV_WR_SEND);
  wr.sg_list = nullptr;
  expect_refused(wr);
  wr = request(IBV_WR_SEND);
  wr.send_flags = 1u << 20;
  expect_refused(wr);
  list_[0].length = 129;
  wr = request(IBV_WR_SEND);
  wr.send_flags = IBV_SEND_INLINE;
  expect_refused(wr);
  wr = request(IBV_WR_SEND, 5);
  wr.send_flags = IBV_SEND_INLINE;
  for (ibv_sge& piece : list_) piece.length = 1;
  expect_refused(wr);
  list_[0].length = list_[1].length = UINT32_MAX;
  expect_refused(request(IBV_WR_SEND, 2));
  list_[0].length = 8;
  wr = request(IBV_WR_RDMA_READ);
  wr.send_flags = IBV_SEND_INLINE;
  expect_refused(wr);
  expect_refused(request(IBV_WR_LOCAL_INV, 1));
}

// The driver takes them, and waits for ever for one of none to be free.
TEST_F(RxeSend, ReadsAndAtomicsNeedANumberThatWasAgreedOn) {
  ibv_qp_attr attr{};
  rxe::remember_for_posting(*fake_->qp, attr, IBV_QP_MAX_QP_RD_ATOMIC);
  for (const ibv_wr_opcode opcode :
       {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP})
    expect_refused(request(opcode));
  ibv_send_wr wr = request(IBV_WR_RDMA_WRITE);
  EXPECT_EQ(post(wr), 0);
  attr.max_rd_atomic = 1;
  rxe::remember_for_posting(*fake_->qp, attr, IBV_QP_MAX_QP_RD_ATOMIC);
  wr = request(IBV_WR_RDMA_READ);
  EXPECT_EQ(post(wr), 0);
}

TEST_F(RxeSend, RefusesBeforeReadyToSend) {
  for (const ibv_qp_state state : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR}) {
    fake_->qp->plain.state = state;
    expect_refused(request(IBV_WR_SEND));
  }
  for (const ibv_qp_state state : {IBV_QPS_SQD, IBV_QPS_SQE, IBV_QPS_ERR}) {
    fake_->qp->plain.state = state;
    ibv_send_wr wr = request(IBV_WR_SEND);
    EXPECT_EQ(post(wr), 0) << state;
  }
}

TEST_F(RxeSend, OfAListTheGoodBeginningIsPosted) {
  ibv_send_wr third = request(IBV_WR_SEND);
  ibv_send_wr second = unknown();
  ibv_send_wr first = request(IBV_WR_SEND);
  first.next = &second;
  second.next = &third;
  EXPECT_EQ(post(first), EINVAL);
  EXPECT_EQ(bad_, &second);
  ASSERT_NE(fake_->send.head(), nullptr);
  fake_->send.consume();
  EXPECT_EQ(fake_->send.head(), nullptr);
  EXPECT_EQ(fake_->system.rung, 1);
}

TEST_F(RxeSend, AFullRingNamesTheRequestThatFoundNoRoom) {
  for (int i = 0; i < 7; ++i) {
    ibv_send_wr wr = request(IBV_WR_SEND);
    ASSERT_EQ(post(wr), 0) << i;
  }
  ibv_send_wr wr = request(IBV_WR_SEND);
  EXPECT_EQ(post(wr), ENOMEM);
  EXPECT_EQ(bad_, &wr);
  fake_->send.consume();
  EXPECT_EQ(post(wr), 0);
}

// It lies in the ring, so it would be sent when anybody rings again: led to ERR, the driver
// flushes.
TEST_F(RxeSend, WhatTheKernelDoesNotHearOfEndsInError) {
  const unit::CapturedStderr says_why;
  fake_->system.bell = ENODEV;
  ibv_send_wr wr = request(IBV_WR_SEND);
  EXPECT_EQ(post(wr), 0);
  ASSERT_EQ(fake_->system.led.size(), 1u);
  EXPECT_EQ(fake_->system.led[0].qp_state, IBV_QPS_ERR);
  EXPECT_EQ(fake_->qp->plain.state, IBV_QPS_ERR);
}

TEST_F(RxeSend, WhatNeitherIsHeardNorCanBeEndedIsToldToTheCaller) {
  fake_->system.bell = fake_->system.error = ENODEV;
  ibv_send_wr wr = request(IBV_WR_SEND);
  EXPECT_EQ(post(wr), ENODEV);
  EXPECT_EQ(bad_, &wr);
}

// Somebody resets the queue pair meanwhile, and goes on with it.
TEST_F(RxeSend, WhereAnotherMovesTheQueuePairNothingIsLedToError) {
  fake_->system.bell = EINVAL;
  fake_->system.state = IBV_QPS_RESET;
  ibv_send_wr wr = request(IBV_WR_SEND);
  EXPECT_EQ(post(wr), EINVAL);
  EXPECT_TRUE(fake_->system.led.empty());
}

// write(2) is refused to who has changed his rights since, and an ioctl is not.
TEST_F(RxeSend, OfAProgramThatHasGivenUpItsRightsIsHeardByTheOtherWay) {
  fake_->system.bell = EACCES;
  ibv_send_wr wr = request(IBV_WR_SEND);
  EXPECT_EQ(post(wr), 0);
  EXPECT_EQ(fake_->system.rung_by_ioctl, std::vector<std::uint32_t>{77});
  EXPECT_TRUE(fake_->system.led.empty());
}

}  // namespace
}  // namespace verbatim::rxe_test
