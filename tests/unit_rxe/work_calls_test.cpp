// SPDX-License-Identifier: BSD-2-Clause
// Requests built by calls (man ibv_wr_post): in the ring's slots, seen by nobody before the batch
// is complete, and not at all when a call had something to refuse.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "providers/rxe/hot.hpp"
#include "tests/unit_rxe/fake_rxe.hpp"

namespace verbatim::rxe_test {
namespace {

constexpr std::uint64_t kAll = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                               IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                               IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                               IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV |
                               IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV;

class RxeWork : public ::testing::Test {
 protected:
  ibv_qp_ex* begin(std::uint64_t wr_id = 5, unsigned flags = IBV_SEND_SIGNALED) {
    ibv_qp_ex* const qp = fake_.extended();
    ibv_wr_start(qp);
    qp->wr_id = wr_id;
    qp->wr_flags = flags;
    return qp;
  }
  /// The oldest request, taken as the kernel would.
  SentView next() {
    unsigned char* const element = fake_.send.head();
    EXPECT_NE(element, nullptr);
    fake_.send.consume();
    return SentView(element != nullptr ? element : fake_.send.slot(0));
  }
  FakeQp fake_{IBV_QPT_RC, 3, kAll};
  char bytes_[32] = "bytes of the application";
};

TEST_F(RxeWork, ABatchIsSeenAtItsEndWithOneRing) {
  ibv_qp_ex* const qp = begin();
  ibv_wr_rdma_write(qp, 0x99, 0x1000);
  ibv_wr_set_sge(qp, 0x11, 0x2000, 300);
  qp->wr_id = 6;
  ibv_wr_send_imm(qp, htonl(7));
  ibv_wr_set_inline_data(qp, bytes_, 5);
  EXPECT_EQ(fake_.send.head(), nullptr);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_EQ(fake_.system.rung, 1);
  const SentView write = next();
  EXPECT_EQ(write.wr_id(), 5u);
  EXPECT_EQ(write.opcode(), 0u);
  EXPECT_EQ(write.flags(), unsigned{IBV_SEND_SIGNALED});
  EXPECT_EQ(write.iova(), 0x1000u);
  EXPECT_EQ(write.u32(32), 0x99u);
  EXPECT_EQ(write.length(), 300u);
  EXPECT_EQ(write.sges(), 1u);
  const ibv_sge sge{0x2000, 300, 0x11};
  EXPECT_EQ(std::memcmp(write.tail(), &sge, sizeof sge), 0);
  const SentView send = next();
  EXPECT_EQ(send.wr_id(), 6u);
  EXPECT_EQ(send.opcode(), 3u);
  EXPECT_EQ(send.imm(), htonl(7));
  EXPECT_EQ(send.flags(), unsigned{IBV_SEND_SIGNALED | IBV_SEND_INLINE});
  EXPECT_EQ(std::memcmp(send.tail(), "bytes", 5), 0);
  EXPECT_EQ(send.length(), 5u);
}

TEST_F(RxeWork, ListsKeepTheirWholeLength) {
  ibv_qp_ex* const qp = begin();
  const ibv_sge list[3] = {{0x1000, 10, 1}, {0x2000, 20, 2}, {0x3000, 30, 3}};
  ibv_wr_send(qp);
  ibv_wr_set_sge_list(qp, 3, list);
  const ibv_data_buf pieces[3] = {{bytes_, 6}, {nullptr, 0}, {bytes_ + 6, 3}};
  ibv_wr_send(qp);
  ibv_wr_set_inline_data_list(qp, 3, pieces);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  const SentView first = next();
  EXPECT_EQ(first.length(), 60u);
  EXPECT_EQ(first.resid(), 60u);
  EXPECT_EQ(first.sges(), 3u);
  const SentView second = next();
  EXPECT_EQ(second.length(), 9u);
  EXPECT_EQ(second.resid(), 9u);
  EXPECT_EQ(std::memcmp(second.tail(), "bytes of ", 9), 0);
}

TEST_F(RxeWork, EveryOperationSaysWhatItIs) {
  ibv_mr mr{};
  mr.lkey = 0x77;
  ibv_mw mw{};
  mw.rkey = 0x100;
  const ibv_mw_bind_info info{&mr, 0x5000, 64, IBV_ACCESS_REMOTE_WRITE};
  ibv_qp_ex* const qp = begin();
  ibv_wr_rdma_read(qp, 1, 0x10);
  ibv_wr_atomic_cmp_swp(qp, 2, 0x20, 3, 4);
  ibv_wr_atomic_fetch_add(qp, 5, 0x30, 6);
  ibv_wr_local_inv(qp, 7);
  ibv_wr_send_inv(qp, 8);
  ibv_wr_bind_mw(qp, &mw, 0x101, &info);
  ibv_wr_rdma_write_imm(qp, 9, 0x40, htonl(10));
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  SentView view = next();
  EXPECT_EQ(view.opcode(), 4u);
  EXPECT_EQ(view.iova(), 0x10u);
  view = next();
  EXPECT_EQ(view.opcode(), 5u);
  EXPECT_EQ(view.u64(32), 3u);
  EXPECT_EQ(view.u64(40), 4u);
  EXPECT_EQ(view.u32(48), 2u);
  view = next();
  EXPECT_EQ(view.opcode(), 6u);
  EXPECT_EQ(view.u64(32), 6u);
  EXPECT_EQ(view.iova(), 0x30u);
  view = next();
  EXPECT_EQ(view.opcode(), 7u);
  EXPECT_EQ(view.imm(), 7u);
  view = next();
  EXPECT_EQ(view.opcode(), 9u);
  EXPECT_EQ(view.imm(), 8u);
  view = next();
  EXPECT_EQ(view.opcode(), 8u);
  EXPECT_EQ(view.u32(40), 0x77u);
  EXPECT_EQ(view.u32(44), 0x100u);
  EXPECT_EQ(view.u32(48), 0x101u);
  view = next();
  EXPECT_EQ(view.opcode(), 1u);
  EXPECT_EQ(view.imm(), htonl(10));
}

TEST_F(RxeWork, ABatchWithSomethingToRefuseIsNotPosted) {
  const ibv_sge list[5] = {};
  ibv_qp_ex* qp = begin();
  ibv_wr_send(qp);
  ibv_wr_set_sge_list(qp, 5, list);
  ibv_wr_send(qp);
  EXPECT_EQ(ibv_wr_complete(qp), EINVAL);
  qp = begin();
  ibv_wr_send(qp);
  char many[129] = {};
  ibv_wr_set_inline_data(qp, many, sizeof many);
  EXPECT_EQ(ibv_wr_complete(qp), EINVAL);
  qp = begin(1, 1u << 20);
  ibv_wr_send(qp);
  EXPECT_EQ(ibv_wr_complete(qp), EINVAL);
  qp = begin();
  qp->wr_flush(qp, 0, 0, 0, 0, 0);
  ibv_wr_set_sge(qp, 0, 0, 0);
  EXPECT_EQ(ibv_wr_complete(qp), EOPNOTSUPP);
  qp = begin();
  for (int i = 0; i < 9; ++i) {
    ibv_wr_send(qp);
    ibv_wr_set_inline_data(qp, bytes_, 1);
  }
  EXPECT_EQ(ibv_wr_complete(qp), ENOMEM);
  fake_.qp->plain.state = IBV_QPS_RTR;
  qp = begin();
  ibv_wr_send(qp);
  EXPECT_EQ(ibv_wr_complete(qp), EINVAL);
  EXPECT_EQ(fake_.send.head(), nullptr);
  EXPECT_EQ(fake_.system.rung, 0);
}

TEST_F(RxeWork, AnAbortedBatchLeavesNoTrace) {
  ibv_qp_ex* qp = begin();
  ibv_wr_send(qp);
  ibv_wr_abort(qp);
  qp = begin(8);
  ibv_wr_send(qp);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_EQ(next().wr_id(), 8u);
  EXPECT_EQ(fake_.send.head(), nullptr);
}

TEST_F(RxeWork, AnEmptyBatchRingsNobody) {
  EXPECT_EQ(ibv_wr_complete(begin()), 0);
  EXPECT_EQ(fake_.system.rung, 0);
}

TEST_F(RxeWork, ARingFilledByABatchIsWholeAcrossItsEnd) {
  for (int round = 0; round < 3; ++round) {
    ibv_qp_ex* const qp = begin();
    for (std::uint64_t i = 0; i < 7; ++i) {
      qp->wr_id = i;
      ibv_wr_send(qp);
    }
    ASSERT_EQ(ibv_wr_complete(qp), 0);
    for (std::uint64_t i = 0; i < 7; ++i) EXPECT_EQ(next().wr_id(), i);
  }
}

TEST(RxeWorkDatagrams, NeedAnAddressEach) {
  FakeQp fake(IBV_QPT_UD, 3, IBV_QP_EX_WITH_SEND);
  rxe::Ah ah;
  ah.number = 55;
  ibv_qp_ex* const qp = fake.extended();
  ibv_wr_start(qp);
  ibv_wr_send(qp);
  ibv_wr_set_ud_addr(qp, &ah.plain, 0x123, 0x456);
  ibv_wr_send(qp);
  EXPECT_EQ(ibv_wr_complete(qp), EINVAL) << "the second has none";
  ibv_wr_start(qp);
  ibv_wr_send(qp);
  ibv_wr_set_ud_addr(qp, &ah.plain, 0x123, 0x456);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  const SentView view(fake.send.head());
  EXPECT_EQ(view.u32(24), 0x123u);
  EXPECT_EQ(view.u32(28), 0x456u);
  EXPECT_EQ(view.u32(36), 55u);
  fake.qp->max_datagram = 100;
  ibv_wr_start(qp);
  ibv_wr_send(qp);
  ibv_wr_set_sge(qp, 1, 0x1000, 101);
  ibv_wr_set_ud_addr(qp, &ah.plain, 0x123, 0x456);
  EXPECT_EQ(ibv_wr_complete(qp), EINVAL) << "longer than the path";
}

TEST(RxeWorkCalls, WhatTheTypeLacksIsRefusedAtCreate) {
  ibv_qp_init_attr_ex attr{};
  attr.qp_type = IBV_QPT_RC;
  attr.send_ops_flags = kAll;
  EXPECT_EQ(rxe::check_work_calls(attr), 0);
  attr.send_ops_flags = IBV_QP_EX_WITH_FLUSH;
  EXPECT_EQ(rxe::check_work_calls(attr), EOPNOTSUPP);
  attr.qp_type = IBV_QPT_UC;
  attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ;
  EXPECT_EQ(rxe::check_work_calls(attr), EOPNOTSUPP);
  attr.qp_type = IBV_QPT_UD;
  attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
  EXPECT_EQ(rxe::check_work_calls(attr), 0);
}

}  // namespace
}  // namespace verbatim::rxe_test
