// SPDX-License-Identifier: BSD-2-Clause
// ibv_wr_*: a batch is seen by the kernel when it is complete, or never.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "tests/unit_siw/fake_siw.hpp"

namespace verbatim::siw_test {
namespace {

class SiwCalls : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(fake_.make_qp({0x11, 8, 4, 0, FakeSiw::kSends, FakeSiw::kReceives},
                            IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE |
                                IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_SEND_WITH_INV),
              0);
    fake_.connect();
    qp_ = &fake_.qp->extended;
    ibv_wr_start(qp_);
    qp_->wr_flags = IBV_SEND_SIGNALED;
  }
  void send(std::uint64_t wr_id) {
    qp_->wr_id = wr_id;
    ibv_wr_send(qp_);
    ibv_wr_set_sge(qp_, 0x77, 0x1000, 16);
  }
  FakeSiw fake_;
  ibv_qp_ex* qp_ = nullptr;
};

TEST_F(SiwCalls, NothingIsSeenBeforeTheBatchIsComplete) {
  char bytes[20] = "some bytes";
  qp_->wr_id = 1;
  ibv_wr_rdma_write(qp_, 0x99, 0xabcdef);
  ibv_wr_set_inline_data(qp_, bytes, 10);
  qp_->wr_id = 2;
  ibv_wr_rdma_read(qp_, 0x98, 0xabcd);
  ibv_wr_set_sge(qp_, 0x77, 0x1000, 16);
  qp_->wr_id = 3;
  qp_->wr_flags = 0;
  ibv_wr_send_inv(qp_, 0x4711);
  const ibv_sge pieces[2] = {{0x1000, 1, 0x77}, {0x2000, 2, 0x78}};
  ibv_wr_set_sge_list(qp_, 2, pieces);
  for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(fake_.sent(i).flags, 0u);
  EXPECT_EQ(fake_.system.rung, 0);
  ASSERT_EQ(ibv_wr_complete(qp_), 0);
  EXPECT_EQ(fake_.system.rung, 1);
  EXPECT_EQ(fake_.sent(0).flags, SIW_WQE_VALID | SIW_WQE_SIGNALLED | SIW_WQE_INLINE);
  EXPECT_EQ(fake_.sent(0).opcode, SIW_OP_WRITE);
  EXPECT_EQ(fake_.sent(0).raddr, 0xabcdefu);
  EXPECT_EQ(std::memcmp(&fake_.sent(0).sge[1], bytes, 10), 0);
  EXPECT_EQ(fake_.sent(1).opcode, SIW_OP_READ);
  EXPECT_EQ(fake_.sent(1).num_sge, 1u);
  EXPECT_EQ(fake_.sent(2).flags, unsigned{SIW_WQE_VALID});
  EXPECT_EQ(fake_.sent(2).rkey, 0x4711u);
  EXPECT_EQ(fake_.sent(2).num_sge, 2u);
}

TEST_F(SiwCalls, AnAbortedBatchLeavesNothing) {
  send(1);
  ibv_wr_abort(qp_);
  EXPECT_EQ(fake_.sent(0).flags, 0u);
  EXPECT_EQ(fake_.system.rung, 0);
  ibv_wr_start(qp_);
  send(2);
  ASSERT_EQ(ibv_wr_complete(qp_), 0);
  EXPECT_EQ(fake_.sent(0).id, 2u);
}

TEST_F(SiwCalls, ABatchThatDoesNotFitIsNotPosted) {
  for (std::uint64_t i = 0; i < 9; ++i) send(i);
  EXPECT_EQ(ibv_wr_complete(qp_), ENOMEM);
  for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(fake_.sent(i).flags, 0u);
  EXPECT_EQ(fake_.system.rung, 0);
}

TEST_F(SiwCalls, WhatWasNotAskedForOrCannotBeFailsTheBatch) {
  send(1);
  ibv_wr_send_imm(qp_, 5);
  ibv_wr_set_sge(qp_, 0x77, 0x1000, 16);
  EXPECT_EQ(ibv_wr_complete(qp_), EOPNOTSUPP);
  char bytes[81] = {};
  ibv_wr_start(qp_);
  ibv_wr_send(qp_);
  ibv_wr_set_inline_data(qp_, bytes, sizeof bytes);
  EXPECT_EQ(ibv_wr_complete(qp_), EINVAL);
  ibv_wr_start(qp_);
  ibv_wr_rdma_read(qp_, 1, 2);
  ibv_wr_set_inline_data(qp_, bytes, 8);
  EXPECT_EQ(ibv_wr_complete(qp_), EINVAL);
  EXPECT_EQ(fake_.sent(0).flags, 0u);
}

TEST_F(SiwCalls, BeforeAConnectionABatchIsRefused) {
  ibv_wr_abort(qp_);
  fake_.qp->plain.state = IBV_QPS_INIT;
  fake_.system.bell = ENOTCONN;
  ibv_wr_start(qp_);
  send(1);
  EXPECT_EQ(ibv_wr_complete(qp_), EINVAL);
  EXPECT_EQ(fake_.sent(0).flags, 0u);
}

TEST_F(SiwCalls, OnAConnectionThatEndedABatchIsFlushed) {
  ibv_wr_abort(qp_);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(verbs_provider_siw.modify_qp(*fake_.qp, attr, IBV_QP_STATE), 0);
  ibv_wr_start(qp_);
  send(1);
  send(2);
  ASSERT_EQ(ibv_wr_complete(qp_), 0);
  ASSERT_EQ(fake_.poll(), 2);
  EXPECT_EQ(fake_.wc[1].wr_id, 2u);
  EXPECT_EQ(fake_.wc[1].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(fake_.sent(0).flags, 0u);
}

}  // namespace
}  // namespace verbatim::siw_test
