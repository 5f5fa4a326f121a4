// SPDX-License-Identifier: BSD-2-Clause
// A device that goes while it is in use: what its driver will never complete is flushed. The real
// one does not go while somebody has it open, so here alone the kernel plays that.
#include <gtest/gtest.h>

#include <cerrno>

#include "providers/siw/hot.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit_siw/fake_siw.hpp"

namespace verbatim::siw_test {
namespace {

class SiwGone : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(
        fake_.make_qp({0x11, 8, 4, 0, FakeSiw::kSends, FakeSiw::kReceives}, IBV_QP_EX_WITH_SEND),
        0);
    fake_.connect();
  }
  int receive(std::uint64_t wr_id) {
    ibv_recv_wr wr{};
    wr.wr_id = wr_id;
    ibv_recv_wr* bad = nullptr;
    return siw::post_recv(&fake_.qp->plain, &wr, &bad);
  }
  /// Not signaled.
  int send(std::uint64_t wr_id) {
    Request request(IBV_WR_SEND);
    request.wr.wr_id = wr_id;
    return post(fake_, request.wr).error;
  }
  void leave() {
    fake_.system.inner.refusal = EIO;
    fake_.system.bell = EIO;
  }
  /// The device leaves, and the program hears of it.
  void go() {
    leave();
    fake_.context.command_channel.doubt();
  }
  void expect_flushed(std::initializer_list<std::uint64_t> wr_ids) {
    ASSERT_EQ(fake_.poll(16), static_cast<int>(wr_ids.size()));
    const ibv_wc* wc = fake_.wc;
    for (const std::uint64_t wr_id : wr_ids) {
      EXPECT_EQ(wc->wr_id, wr_id);
      EXPECT_EQ(wc->status, IBV_WC_WR_FLUSH_ERR);
      EXPECT_EQ(wc->qp_num, 0x11u);
      ++wc;
    }
    EXPECT_EQ(fake_.poll(16), 0) << "once";
  }

  unit::CapturedStderr said_;  ///< that the device has gone is told in a line
  FakeSiw fake_;
};

TEST_F(SiwGone, FlushesWhatIsOutstandingOnceAndInOrderBehindWhatTheDriverCompleted) {
  for (const std::uint64_t wr_id : {1u, 2u, 3u}) ASSERT_EQ(send(wr_id), 0);
  for (const std::uint64_t wr_id : {11u, 12u}) ASSERT_EQ(receive(wr_id), 0);
  fake_.sent(0).flags = 0;
  ASSERT_TRUE(fake_.complete(1, SIW_OP_SEND));
  go();
  ASSERT_EQ(fake_.poll(1), 1);
  EXPECT_EQ(fake_.wc[0].wr_id, 1u);
  EXPECT_EQ(fake_.wc[0].status, IBV_WC_SUCCESS);
  expect_flushed({2, 3, 11, 12});
}

// Who has no thread for events hears of it from the doorbell.
TEST_F(SiwGone, PostingGoesOnAndIsFlushed) {
  leave();
  ASSERT_EQ(receive(1), 0);
  EXPECT_EQ(send(2), 0);
  ibv_qp_ex* const calls = &fake_.qp->extended;
  ibv_wr_start(calls);
  calls->wr_id = 3;
  calls->wr_flags = 0;
  ibv_wr_send(calls);
  EXPECT_EQ(ibv_wr_complete(calls), 0);
  expect_flushed({2, 3, 1});
  EXPECT_EQ(receive(4), 0);
  EXPECT_EQ(send(5), 0);
  expect_flushed({4, 5});
  EXPECT_EQ(said_.lines(), 1);
}

// The side that was connected to, and has not sent yet.
TEST_F(SiwGone, PostingTheFirstRequestIsFlushed) {
  fake_.qp->plain.state = IBV_QPS_INIT;
  leave();
  EXPECT_EQ(send(1), 0);
  expect_flushed({1});
}

TEST_F(SiwGone, IsInErrorAndCanBeLedThereAndNowhereElse) {
  ASSERT_EQ(receive(1), 0);
  go();
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(verbs_provider_siw.query_qp(*fake_.qp, attr, IBV_QP_STATE, init), 0);
  EXPECT_EQ(attr.qp_state, IBV_QPS_ERR);
  attr.qp_state = IBV_QPS_ERR;
  EXPECT_EQ(verbs_provider_siw.modify_qp(*fake_.qp, attr, IBV_QP_STATE), 0);
  attr.qp_state = IBV_QPS_RESET;
  EXPECT_EQ(verbs_provider_siw.modify_qp(*fake_.qp, attr, IBV_QP_STATE), EINVAL);
  expect_flushed({1});
}

// IBTA 10.2.9: what waits in a shared queue belongs to no queue pair.
TEST(SiwGoneShared, LeavesReceivesOfASharedQueueAlone) {
  const unit::CapturedStderr said;
  FakeSiw fake;
  ASSERT_EQ(fake.make_srq(), 0);
  ASSERT_EQ(fake.make_qp(), 0);
  fake.connect();
  ibv_recv_wr wr{};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(siw::post_srq_recv(&fake.srq->plain, &wr, &bad), 0);
  fake.system.inner.refusal = EIO;
  fake.context.command_channel.doubt();
  EXPECT_EQ(fake.poll(), 0);
  EXPECT_NE(fake.shared(0).flags, 0u);
}

// Neither an event nor an errno is proof by itself: a device that answers is there.
TEST_F(SiwGone, IsNotADeviceThatAnswers) {
  ASSERT_EQ(receive(1), 0);
  fake_.context.command_channel.doubt();
  EXPECT_EQ(fake_.poll(), 0);
  EXPECT_EQ(fake_.qp->plain.state, IBV_QPS_RTS);
  EXPECT_EQ(said_.lines(), 0);
  fake_.system.bell = EIO;
  EXPECT_EQ(send(2), 0);
  EXPECT_NE(fake_.context.command_channel.presence(), uverbs::Presence::kGone);
  EXPECT_EQ(said_.lines(), 1) << "that nobody heard";
}

}  // namespace
}  // namespace verbatim::siw_test
