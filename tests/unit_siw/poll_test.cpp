// SPDX-License-Identifier: BSD-2-Clause
// Completions as the driver writes them, read by ibv_poll_cq and through the extended queue's
// cursor; how a queue is armed.
#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "providers/siw/hot.hpp"
#include "tests/unit_siw/fake_siw.hpp"

namespace verbatim::siw_test {
namespace {

class SiwPoll : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(fake_.make_cq(), 0); }
  FakeSiw fake_;
};

TEST_F(SiwPoll, EveryFieldArrives) {
  ASSERT_TRUE(fake_.complete(0x1122334455667788, SIW_OP_RECEIVE, SIW_WC_SUCCESS, 0xabcdef));
  ASSERT_EQ(fake_.poll(), 1);
  EXPECT_EQ(fake_.wc[0].wr_id, 0x1122334455667788u);
  EXPECT_EQ(fake_.wc[0].opcode, IBV_WC_RECV);
  EXPECT_EQ(fake_.wc[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(fake_.wc[0].byte_len, 100u);
  EXPECT_EQ(fake_.wc[0].qp_num, 0xabcdefu);
  EXPECT_EQ(fake_.wc[0].wc_flags, 0u);
  EXPECT_EQ(fake_.completion(0).flags, 0u) << "it is the kernel's again";
  EXPECT_EQ(fake_.poll(), 0);
}

TEST_F(SiwPoll, OperationsAndStatusesAreTranslated) {
  const struct {
    unsigned opcode;
    ibv_wc_opcode told;
  } kOpcodes[] = {{SIW_OP_WRITE, IBV_WC_RDMA_WRITE},
                  {SIW_OP_READ, IBV_WC_RDMA_READ},
                  {SIW_OP_SEND, IBV_WC_SEND},
                  {SIW_OP_SEND_REMOTE_INV, IBV_WC_SEND}};
  for (const auto& [opcode, told] : kOpcodes) {
    ASSERT_TRUE(fake_.complete(1, opcode));
    ASSERT_EQ(fake_.poll(), 1);
    EXPECT_EQ(fake_.wc[0].opcode, told) << opcode;
  }
  const struct {
    unsigned status;
    ibv_wc_status told;
  } kStatuses[] = {{SIW_WC_LOC_LEN_ERR, IBV_WC_LOC_LEN_ERR},
                   {SIW_WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR},
                   {SIW_WC_LOC_QP_OP_ERR, IBV_WC_LOC_QP_OP_ERR},
                   {SIW_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR},
                   {SIW_WC_BAD_RESP_ERR, IBV_WC_BAD_RESP_ERR},
                   {SIW_WC_LOC_ACCESS_ERR, IBV_WC_LOC_ACCESS_ERR},
                   {SIW_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR},
                   {SIW_WC_REM_INV_REQ_ERR, IBV_WC_REM_INV_REQ_ERR},
                   {SIW_WC_GENERAL_ERR, IBV_WC_GENERAL_ERR}};
  for (const auto& [status, told] : kStatuses) {
    ASSERT_TRUE(fake_.complete(1, SIW_OP_SEND, status));
    ASSERT_EQ(fake_.poll(), 1);
    EXPECT_EQ(fake_.wc[0].status, told) << status;
  }
}

TEST_F(SiwPoll, WhatCannotBeIsAnErrorAndNotANumber) {
  ASSERT_TRUE(fake_.complete(1, SIW_OP_SEND, 5000));
  ASSERT_TRUE(fake_.complete(2, 77));
  ASSERT_TRUE(fake_.complete(3, SIW_OP_REG_MR));
  ASSERT_TRUE(fake_.complete(4, SIW_OP_SEND, SIW_WC_SUCCESS, 0x1000011));
  ASSERT_EQ(fake_.poll(), 4);
  for (unsigned i = 0; i < 4; ++i) {
    EXPECT_EQ(fake_.wc[i].status, IBV_WC_GENERAL_ERR) << i;
    EXPECT_EQ(fake_.wc[i].wr_id, i + 1);
  }
}

TEST_F(SiwPoll, TakesNoMoreThanAskedAndAcrossTheEnd) {
  for (int round = 0; round < 5; ++round) {
    for (std::uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(fake_.complete(i, SIW_OP_SEND));
    EXPECT_FALSE(fake_.complete(9, SIW_OP_SEND)) << "the queue holds eight";
    ASSERT_EQ(fake_.poll(3), 3);
    ASSERT_EQ(fake_.poll(3), 3);
    EXPECT_EQ(fake_.wc[0].wr_id, 3u);
    ASSERT_EQ(fake_.poll(3), 2);
    EXPECT_EQ(fake_.wc[1].wr_id, 7u);
    ASSERT_EQ(fake_.poll(0), 0);
  }
}

TEST_F(SiwPoll, TheCursorGoesFromOneToTheNextAndLosesNone) {
  ibv_poll_cq_attr attr{};
  ibv_cq_ex* const cq = &fake_.cq->extended;
  EXPECT_EQ(ibv_start_poll(cq, &attr), ENOENT);
  ASSERT_TRUE(fake_.complete(1, SIW_OP_READ));
  ASSERT_TRUE(fake_.complete(2, SIW_OP_RECEIVE, SIW_WC_WR_FLUSH_ERR));
  ASSERT_EQ(ibv_start_poll(cq, &attr), 0);
  EXPECT_EQ(cq->wr_id, 1u);
  EXPECT_EQ(ibv_wc_read_opcode(cq), IBV_WC_RDMA_READ);
  ASSERT_EQ(ibv_next_poll(cq), 0);
  EXPECT_EQ(cq->status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(ibv_wc_read_byte_len(cq), 100u);
  EXPECT_EQ(ibv_next_poll(cq), ENOENT);
  ibv_end_poll(cq);
  ASSERT_TRUE(fake_.complete(3, SIW_OP_SEND));
  ASSERT_EQ(ibv_start_poll(cq, &attr), 0);
  EXPECT_EQ(cq->wr_id, 3u);
  ibv_end_poll(cq);
}

// The driver would wake nobody for a solicited receive.
TEST_F(SiwPoll, ArmingIsAWordBehindTheQueueAndAlwaysForAll) {
  ASSERT_EQ(siw::req_notify_cq(&fake_.cq->plain, 0), 0);
  EXPECT_EQ(fake_.control().flags, unsigned{SIW_NOTIFY_ALL});
  fake_.control().flags = SIW_NOTIFY_NOT;
  ASSERT_EQ(siw::req_notify_cq(&fake_.cq->plain, 1), 0);
  EXPECT_EQ(fake_.control().flags, unsigned{SIW_NOTIFY_ALL});
}

TEST_F(SiwPoll, TimesAreNotTold) {
  FakeSiw other;
  other.cq_attr.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
  EXPECT_EQ(other.make_cq(), EOPNOTSUPP);
}

}  // namespace
}  // namespace verbatim::siw_test
