// SPDX-License-Identifier: BSD-2-Clause
// Requests built by calls (man ibv_wr_post): in the ring's slots, seen by nobody before the batch
// is complete, and not at all when a call had something to refuse.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "abi/kernel/placement.hpp"
#include "providers/rxe/hot.hpp"
#include "providers/rxe/queue_pairs.hpp"
#include "tests/unit_rxe/fake_rxe.hpp"

namespace verbatim::rxe_test {
namespace {

constexpr std::uint64_t kAll = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                               IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                               IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                               IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV |
                               IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV;
constexpr std::uint64_t kPlacement = IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE;

class RxeWork : public ::testing::Test {
 protected:
  explicit RxeWork(std::uint64_t send_ops = kAll) : fake_(IBV_QPT_RC, 3, send_ops) {}
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
  FakeQp fake_;
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

class RxePlacement : public RxeWork {
 protected:
  RxePlacement() : RxeWork(kAll | kPlacement) {}
};

// The bytes that Linux 6.12's driver reads, by its rdma_user_rxe.h.
TEST_F(RxePlacement, AnAtomicWriteBringsItsEightBytesWhereInlineDataLies) {
  const char value[9] = "8 bytes.";
  ibv_qp_ex* const qp = begin(5, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
  ibv_wr_atomic_write(qp, 0x99, 0xabcdef0123456788, value);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  const SentView view = next();
  EXPECT_EQ(view.wr_id(), 5u);
  EXPECT_EQ(view.opcode(), 15u);
  EXPECT_EQ(view.flags(), unsigned{IBV_SEND_SIGNALED | IBV_SEND_FENCE});
  EXPECT_EQ(view.u64(24), 0xabcdef0123456788u);
  EXPECT_EQ(view.u32(32), 0x99u);
  EXPECT_EQ(view.iova(), 0xabcdef0123456788u);
  EXPECT_EQ(view.length(), 8u);
  EXPECT_EQ(view.resid(), 8u);
  EXPECT_EQ(view.sges(), 0u);
  EXPECT_EQ(std::memcmp(view.tail(), value, 8), 0);
  EXPECT_EQ(view.tail()[8], 0xa5) << "what the slot held before";
}

TEST_F(RxePlacement, AFlushNamesItsRangeAndWhatItWants) {
  ibv_qp_ex* const qp = begin();
  ibv_wr_flush(qp, 0x99, 0xabcdef0123456789, 300, IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT,
               IBV_FLUSH_RANGE);
  ibv_wr_flush(qp, 0x9a, 0x1000, SIZE_MAX, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  SentView view = next();
  EXPECT_EQ(view.opcode(), 14u);
  EXPECT_EQ(view.u64(24), 0xabcdef0123456789u);
  EXPECT_EQ(view.u32(32), 300u);
  EXPECT_EQ(view.u32(36), 0x99u);
  EXPECT_EQ(view.u8(40), 3u);
  EXPECT_EQ(view.u8(41), 0u);
  EXPECT_EQ(view.iova(), 0xabcdef0123456789u);
  EXPECT_EQ(view.length(), 300u) << "what the driver sends as the range";
  EXPECT_EQ(view.resid(), 300u);
  EXPECT_EQ(view.sges(), 0u);
  view = next();
  EXPECT_EQ(view.u32(36), 0x9au);
  EXPECT_EQ(view.u8(40), 2u);
  EXPECT_EQ(view.u8(41), 1u);
  EXPECT_EQ(view.length(), 0u) << "of a whole region the range means nothing";
}

TEST_F(RxePlacement, WhatIsNoFlushIsRefused) {
  struct {
    std::size_t length;
    std::uint8_t type, level;
  } const wrong[] = {{1, 0, IBV_FLUSH_RANGE},
                     {1, 4, IBV_FLUSH_RANGE},
                     {1, IBV_FLUSH_GLOBAL, 2},
                     {(std::size_t{1} << 31) + 1, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE}};
  for (const auto& one : wrong) {
    ibv_qp_ex* const qp = begin();
    ibv_wr_flush(qp, 1, 0x1000, one.length, one.type, one.level);
    EXPECT_EQ(ibv_wr_complete(qp), EINVAL) << one.length << " " << int{one.type};
  }
  EXPECT_EQ(fake_.send.head(), nullptr);
}

// The driver would send as many bytes as such a setter names, of what lies behind the request.
TEST_F(RxePlacement, NoBuffersBelongToThem) {
  const ibv_sge list[2] = {};
  const auto refused = [&](auto add, auto set) {
    ibv_qp_ex* const qp = begin();
    add(qp);
    set(qp);
    EXPECT_EQ(ibv_wr_complete(qp), EINVAL);
  };
  const auto write = [&](ibv_qp_ex* qp) { ibv_wr_atomic_write(qp, 1, 0x1000, bytes_); };
  const auto flush = [](ibv_qp_ex* qp) {
    ibv_wr_flush(qp, 1, 0x1000, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
  };
  const auto set_sge = [](ibv_qp_ex* qp) { ibv_wr_set_sge(qp, 1, 0x2000, 4096); };
  const auto set_list = [&](ibv_qp_ex* qp) { ibv_wr_set_sge_list(qp, 2, list); };
  const auto set_inline = [&](ibv_qp_ex* qp) { ibv_wr_set_inline_data(qp, bytes_, 16); };
  refused(write, set_sge);
  refused(write, set_list);
  refused(write, set_inline);
  refused(flush, set_sge);
  refused(flush, set_list);
  refused(flush, set_inline);
  EXPECT_EQ(fake_.send.head(), nullptr);
}

// IBTA A19: they are counted like READs, and hang or worse where none were agreed on.
TEST_F(RxePlacement, TheyNeedANumberThatWasAgreedOn) {
  ibv_qp_attr attr{};
  rxe::remember_for_posting(*fake_.qp, attr, IBV_QP_MAX_QP_RD_ATOMIC);
  ibv_qp_ex* qp = begin();
  ibv_wr_atomic_write(qp, 1, 0x1000, bytes_);
  EXPECT_EQ(ibv_wr_complete(qp), EINVAL);
  qp = begin();
  ibv_wr_flush(qp, 1, 0x1000, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
  EXPECT_EQ(ibv_wr_complete(qp), EINVAL);
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

class RxeWorkCalls : public ::testing::Test {
 protected:
  int check(ibv_qp_type type, std::uint64_t calls) {
    ibv_qp_init_attr_ex attr{};
    attr.qp_type = type;
    attr.send_ops_flags = calls;
    return rxe::check_work_calls(fake_.context, attr);
  }
  FakeQp fake_;
};

TEST_F(RxeWorkCalls, WhatTheTypeLacksIsRefusedAtCreate) {
  EXPECT_EQ(check(IBV_QPT_RC, kAll), 0);
  EXPECT_EQ(check(IBV_QPT_RC, IBV_QP_EX_WITH_TSO), EOPNOTSUPP);
  EXPECT_EQ(check(IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ), EOPNOTSUPP);
  EXPECT_EQ(check(IBV_QPT_UD, IBV_QP_EX_WITH_SEND), 0);
}

TEST_F(RxeWorkCalls, WhatTheDeviceDoesNotSayThatItHasIsRefusedAtCreate) {
  EXPECT_EQ(check(IBV_QPT_RC, IBV_QP_EX_WITH_FLUSH), EOPNOTSUPP);
  EXPECT_EQ(check(IBV_QPT_RC, IBV_QP_EX_WITH_ATOMIC_WRITE), EOPNOTSUPP);
  fake_.system.device_flags = kernel::kDeviceFlushGlobal;
  EXPECT_EQ(check(IBV_QPT_RC, IBV_QP_EX_WITH_FLUSH), 0);
  EXPECT_EQ(check(IBV_QPT_RC, kPlacement), EOPNOTSUPP);
  fake_.system.device_flags = kernel::kDeviceFlushPersistent | kernel::kDeviceAtomicWrite;
  EXPECT_EQ(check(IBV_QPT_RC, kAll | kPlacement), 0);
  EXPECT_EQ(check(IBV_QPT_UC, IBV_QP_EX_WITH_FLUSH), EOPNOTSUPP) << "nobody answers";
  EXPECT_EQ(check(IBV_QPT_UC, IBV_QP_EX_WITH_ATOMIC_WRITE), EOPNOTSUPP);
  fake_.system.error = EIO;
  EXPECT_EQ(check(IBV_QPT_RC, IBV_QP_EX_WITH_FLUSH), EIO) << "a device that is gone";
}

}  // namespace
}  // namespace verbatim::rxe_test
