// SPDX-License-Identifier: BSD-2-Clause
// Completions as the kernel writes them, read by ibv_poll_cq and through the extended queue's
// cursor.
#include <gtest/gtest.h>

#include <cerrno>

#include "providers/rxe/completion.hpp"
#include "providers/rxe/hot.hpp"
#include "tests/unit_rxe/fake_rxe.hpp"

namespace verbatim::rxe_test {
namespace {

class RxePoll : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cq_.ring.map(ring_.fd(), ring_.place(), sizeof(ib_uverbs_wc)), 0);
    cq_.plain.context = context_.handle();
    rxe::wire_cursor(cq_);
  }
  void complete(std::uint64_t wr_id, std::uint32_t status = 0, std::uint32_t opcode = 0) {
    ib_uverbs_wc wc{};
    wc.wr_id = wr_id;
    wc.status = status;
    wc.opcode = opcode;
    complete(wc);
  }
  void complete(const ib_uverbs_wc& wc) { ASSERT_TRUE(ring_.produce(&wc, sizeof wc)); }
  int poll(int entries = 8) { return rxe::poll_cq(&cq_.plain, entries, wc_); }

  FakeSystem system_;
  Device device_;
  rxe::Context context_{device_, 14, system_};
  FakeRing ring_{3, 6};
  rxe::Cq cq_;
  ibv_wc wc_[8] = {};
};

TEST_F(RxePoll, EveryFieldArrives) {
  ib_uverbs_wc wc{};
  wc.wr_id = 0x1122334455667788;
  wc.opcode = 128;
  wc.byte_len = 100;
  wc.ex.imm_data = 0x01020304;
  wc.qp_num = 17;
  wc.src_qp = 18;
  wc.wc_flags = 1 | 2;
  wc.pkey_index = 3;
  wc.slid = 4;
  wc.sl = 5;
  wc.dlid_path_bits = 6;
  complete(wc);
  ASSERT_EQ(poll(), 1);
  EXPECT_EQ(wc_[0].wr_id, 0x1122334455667788u);
  EXPECT_EQ(wc_[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc_[0].opcode, IBV_WC_RECV);
  EXPECT_EQ(wc_[0].byte_len, 100u);
  EXPECT_EQ(wc_[0].imm_data, 0x01020304u);
  EXPECT_EQ(wc_[0].qp_num, 17u);
  EXPECT_EQ(wc_[0].src_qp, 18u);
  EXPECT_EQ(wc_[0].wc_flags, unsigned{IBV_WC_GRH | IBV_WC_WITH_IMM});
  EXPECT_EQ(wc_[0].pkey_index, 3u);
  EXPECT_EQ(wc_[0].slid, 4u);
  EXPECT_EQ(wc_[0].sl, 5u);
  EXPECT_EQ(wc_[0].dlid_path_bits, 6u);
  EXPECT_EQ(poll(), 0);
}

// The kernel's bit of an invalidated key is the API's of a checksum, and the other way round.
TEST_F(RxePoll, FlagsAreTranslated) {
  ib_uverbs_wc wc{};
  wc.opcode = 128;
  wc.wc_flags = 1 | 4;
  wc.ex.invalidate_rkey = 0x4711;
  complete(wc);
  ASSERT_EQ(poll(), 1);
  EXPECT_EQ(wc_[0].wc_flags, unsigned{IBV_WC_WITH_INV}) << "no GRH lies in a connection's buffer";
  EXPECT_EQ(wc_[0].invalidated_rkey, 0x4711u);
  wc.wc_flags = 8;
  complete(wc);
  ASSERT_EQ(poll(), 1);
  EXPECT_EQ(wc_[0].wc_flags, unsigned{IBV_WC_IP_CSUM_OK});
}

TEST_F(RxePoll, WhatCannotBeIsAnErrorAndNotANumber) {
  complete(1, 5000);
  complete(2, 0, 77);
  complete(3, 0, UINT32_MAX);
  complete(4, IBV_WC_RETRY_EXC_ERR);
  ASSERT_EQ(poll(), 4);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(wc_[i].status, IBV_WC_GENERAL_ERR) << i;
    EXPECT_EQ(wc_[i].wr_id, static_cast<std::uint64_t>(i + 1));
  }
  EXPECT_EQ(wc_[3].status, IBV_WC_RETRY_EXC_ERR);
}

// Each may have led its queue pair to ERR; a flushed one followed another, or an order of ours.
TEST_F(RxePoll, ErrorsAreNotedForWhoeverPostsReceives) {
  complete(1);
  complete(2, IBV_WC_WR_FLUSH_ERR);
  ASSERT_EQ(poll(), 2);
  EXPECT_EQ(context_.troubles, 0u);
  complete(3, IBV_WC_REM_ACCESS_ERR);
  ASSERT_EQ(poll(), 1);
  EXPECT_EQ(context_.troubles, 1u);
  complete(4, IBV_WC_LOC_QP_OP_ERR);
  ibv_poll_cq_attr attr{};
  ASSERT_EQ(ibv_start_poll(&cq_.extended, &attr), 0);
  ibv_end_poll(&cq_.extended);
  EXPECT_EQ(context_.troubles, 2u);
}

TEST_F(RxePoll, TakesNoMoreThanAskedAndAcrossTheEnd) {
  for (int round = 0; round < 5; ++round) {
    for (std::uint64_t i = 0; i < 7; ++i) complete(i);
    ASSERT_EQ(poll(3), 3);
    ASSERT_EQ(poll(3), 3);
    EXPECT_EQ(wc_[0].wr_id, 3u);
    ASSERT_EQ(poll(3), 1);
    EXPECT_EQ(wc_[0].wr_id, 6u);
    ASSERT_EQ(poll(0), 0);
  }
}

TEST_F(RxePoll, TheCursorGoesFromOneToTheNextAndLosesNone) {
  ibv_poll_cq_attr attr{};
  ibv_cq_ex* const cq = &cq_.extended;
  EXPECT_EQ(ibv_start_poll(cq, &attr), ENOENT);
  complete(1);
  complete(2, IBV_WC_WR_FLUSH_ERR);
  ASSERT_EQ(ibv_start_poll(cq, &attr), 0);
  EXPECT_EQ(cq->wr_id, 1u);
  EXPECT_EQ(cq->status, IBV_WC_SUCCESS);
  ASSERT_EQ(ibv_next_poll(cq), 0);
  EXPECT_EQ(cq->wr_id, 2u);
  EXPECT_EQ(cq->status, IBV_WC_WR_FLUSH_ERR);
  ASSERT_EQ(ibv_next_poll(cq), ENOENT);
  complete(3);
  ibv_end_poll(cq);
  ASSERT_EQ(ibv_start_poll(cq, &attr), 0) << "what came between ENOENT and the end is there";
  EXPECT_EQ(cq->wr_id, 3u);
  ibv_end_poll(cq);
  EXPECT_EQ(poll(), 0);
  attr.comp_mask = 1;
  EXPECT_EQ(ibv_start_poll(cq, &attr), EINVAL);
}

TEST_F(RxePoll, TheCursorReadsWhatThePollWould) {
  ib_uverbs_wc wc{};
  wc.opcode = 129;
  wc.vendor_err = 7;
  wc.byte_len = 8;
  wc.ex.imm_data = 9;
  wc.qp_num = 10;
  wc.src_qp = 11;
  wc.wc_flags = 2;
  wc.slid = 12;
  wc.sl = 13;
  wc.dlid_path_bits = 14;
  complete(wc);
  ibv_poll_cq_attr attr{};
  ibv_cq_ex* const cq = &cq_.extended;
  ASSERT_EQ(ibv_start_poll(cq, &attr), 0);
  EXPECT_EQ(ibv_wc_read_opcode(cq), IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(ibv_wc_read_vendor_err(cq), 7u);
  EXPECT_EQ(ibv_wc_read_byte_len(cq), 8u);
  EXPECT_EQ(ibv_wc_read_imm_data(cq), 9u);
  EXPECT_EQ(ibv_wc_read_qp_num(cq), 10u);
  EXPECT_EQ(ibv_wc_read_src_qp(cq), 11u);
  EXPECT_EQ(ibv_wc_read_wc_flags(cq), unsigned{IBV_WC_WITH_IMM});
  EXPECT_EQ(ibv_wc_read_slid(cq), 12u);
  EXPECT_EQ(ibv_wc_read_sl(cq), 13u);
  EXPECT_EQ(ibv_wc_read_dlid_path_bits(cq), 14u);
  ibv_end_poll(cq);
}

TEST_F(RxePoll, TheClassicPollWorksBetweenStartAndEnd) {
  complete(1);
  complete(2);
  ibv_poll_cq_attr attr{};
  ASSERT_EQ(ibv_start_poll(&cq_.extended, &attr), 0);
  ASSERT_EQ(poll(), 1);
  EXPECT_EQ(wc_[0].wr_id, 2u);
  EXPECT_EQ(cq_.extended.wr_id, 1u);
  ibv_end_poll(&cq_.extended);
}

// The kernel flushed what was there when it failed. What came between that and the poll would wait
// for a message, and none comes any more.
TEST(RxePollOfAFailure, FlushesWhatWasPostedBeforeAnybodyKnew) {
  FakeQp fake;
  FakeRing ring(3, 6);
  rxe::Cq cq;
  ASSERT_EQ(cq.ring.map(ring.fd(), ring.place(), sizeof(ib_uverbs_wc)), 0);
  cq.plain.context = fake.context.handle();
  fake.qp->plain.send_cq = &cq.plain;
  fake.qp->plain.qp_num = 33;
  fake.qp->number =
      fake.context.objects.add(uverbs::Kind::kQp, static_cast<uverbs::Qp*>(fake.qp.get()));
  fake.context.objects.name(fake.qp->number, 33);
  ibv_recv_wr receive{};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(rxe::post_recv(fake.plain(), &receive, &bad), 0);
  fake.system.state = IBV_QPS_ERR;
  const auto poll_one = [&](std::uint32_t status, std::uint32_t qpn) {
    ib_uverbs_wc wc{};
    wc.status = status;
    wc.qp_num = qpn;
    ASSERT_TRUE(ring.produce(&wc, sizeof wc));
    ibv_wc out{};
    ASSERT_EQ(rxe::poll_cq(&cq.plain, 1, &out), 1);
  };
  poll_one(IBV_WC_SUCCESS, 33);
  poll_one(IBV_WC_WR_FLUSH_ERR, 33);
  poll_one(IBV_WC_RETRY_EXC_ERR, 34);
  EXPECT_EQ(fake.system.asked, 1) << "whether it is in ERR; nothing else happened to this one";
  EXPECT_TRUE(fake.system.led.empty());
  poll_one(IBV_WC_RETRY_EXC_ERR, 33);
  EXPECT_EQ(fake.system.asked, 3) << "for its ends, and for its state";
  EXPECT_EQ(fake.qp->plain.state, IBV_QPS_ERR);
  ASSERT_EQ(fake.system.led.size(), 1u);
  EXPECT_EQ(fake.system.led[0].qp_state, IBV_QPS_ERR);
  fake.context.objects.name(fake.qp->number, 0);
  poll_one(IBV_WC_RETRY_EXC_ERR, 33);
  EXPECT_EQ(fake.system.asked, 3) << "it is being destroyed";
}

TEST_F(RxePoll, FieldsThatNobodyCarriesAreRefusedAtCreate) {
  ibv_cq_init_attr_ex attr{};
  attr.wc_flags = IBV_WC_STANDARD_FLAGS;
  EXPECT_EQ(check_wc_fields(attr, "rxe"), 0);
  attr.wc_flags |= IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
  EXPECT_EQ(check_wc_fields(attr, "rxe"), EOPNOTSUPP);
}

}  // namespace
}  // namespace verbatim::rxe_test
