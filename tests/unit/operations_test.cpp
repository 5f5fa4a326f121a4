// SPDX-License-Identifier: BSD-2-Clause
// The operations of queue pairs as data, and the calls of ibv_wr_* that are made of them.
#include "runtime/verbs/software/operations.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "runtime/verbs/software/work_calls.hpp"

namespace verbatim {
namespace {

TEST(Operations, OfATypeAreThoseOfIbtaTable45) {
  const std::uint64_t kSends = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
  EXPECT_EQ(operations_of(IBV_QPT_UD), kSends);
  EXPECT_EQ(operations_of(IBV_QPT_XRC_SEND), operations_of(IBV_QPT_RC));
  EXPECT_EQ(operations_of(IBV_QPT_XRC_RECV), 0u);
  EXPECT_EQ(operations_of(IBV_QPT_RAW_PACKET), 0u);
  // What asks for an answer with data, or for the last word on its arrival, needs a reliable one.
  EXPECT_EQ(operations_of(IBV_QPT_RC) & ~operations_of(IBV_QPT_UC),
            std::uint64_t{IBV_QP_EX_WITH_RDMA_READ} | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_ATOMIC_WRITE |
                IBV_QP_EX_WITH_FLUSH);
  EXPECT_EQ(operations_of(IBV_QPT_UC) & kSends, kSends);
}

TEST(Operations, OpcodesThatAreNoneHaveNoBit) {
  for (const unsigned opcode : {11u, 12u, 13u, 16u, 31u, 32u, 64u, ~0u}) {
    EXPECT_EQ(operation_bit(opcode), 0u) << opcode;
    EXPECT_FALSE(has_opcode(opcodes_of(IBV_QPT_RC), opcode)) << opcode;
  }
  EXPECT_FALSE(has_opcode(opcodes_of(IBV_QPT_RC), IBV_WR_TSO));
  EXPECT_TRUE(has_opcode(opcodes_of(IBV_QPT_RC), IBV_WR_FLUSH));
}

TEST(Operations, NeedRightsOfTheMemoryThatTheyName) {
  EXPECT_EQ(remote_access_for(IBV_WR_RDMA_WRITE_WITH_IMM, 0), unsigned{IBV_ACCESS_REMOTE_WRITE});
  EXPECT_EQ(remote_access_for(IBV_WR_ATOMIC_WRITE, 0), unsigned{IBV_ACCESS_REMOTE_WRITE});
  EXPECT_EQ(remote_access_for(IBV_WR_RDMA_READ, 0), unsigned{IBV_ACCESS_REMOTE_READ});
  EXPECT_EQ(remote_access_for(IBV_WR_ATOMIC_FETCH_AND_ADD, 0), unsigned{IBV_ACCESS_REMOTE_ATOMIC});
  EXPECT_EQ(remote_access_for(IBV_WR_FLUSH, IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT),
            unsigned{IBV_ACCESS_FLUSH_GLOBAL} | unsigned{IBV_ACCESS_FLUSH_PERSISTENT});
  EXPECT_EQ(remote_access_for(IBV_WR_FLUSH, IBV_FLUSH_GLOBAL), unsigned{IBV_ACCESS_FLUSH_GLOBAL});
  EXPECT_EQ(remote_access_for(IBV_WR_SEND_WITH_INV, 0), 0u);
}

/// A provider of SEND and RDMA READ that counts what is called.
int calls_made, calls_refused;

void count_call(ibv_qp_ex*) noexcept { ++calls_made; }
void count_read(ibv_qp_ex*, std::uint32_t, std::uint64_t) noexcept { ++calls_made; }
void count_refusal(ibv_qp_ex*) noexcept { ++calls_refused; }
int end_batch(ibv_qp_ex*) noexcept { return calls_refused != 0 ? EOPNOTSUPP : 0; }

constexpr WorkCalls kSendAndRead{.wr_rdma_read = count_read,
                                 .wr_send = count_call,
                                 .wr_start = count_call,
                                 .wr_complete = end_batch,
                                 .wr_abort = count_call};

class WorkCallsOf : public testing::Test {
 protected:
  static void set(std::uint64_t asked) {
    calls_made = calls_refused = 0;
    set_work_calls<count_refusal>(qp_, asked, kSendAndRead);
  }
  static inline ibv_qp_ex qp_{};
};

TEST_F(WorkCallsOf, AQueuePairAreThoseThatItWasMadeWith) {
  set(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ);
  ibv_wr_start(&qp_);
  ibv_wr_send(&qp_);
  ibv_wr_rdma_read(&qp_, 1, 2);
  EXPECT_EQ(ibv_wr_complete(&qp_), 0);
  EXPECT_EQ(calls_made, 3);
  EXPECT_EQ(calls_refused, 0);
}

ibv_sge sge_set;
ibv_data_buf buffer_set;
std::size_t pieces_set;
void note_list(ibv_qp_ex*, std::size_t count, const ibv_sge* list) noexcept {
  pieces_set = count;
  sge_set = *list;
}
void note_buffers(ibv_qp_ex*, std::size_t count, const ibv_data_buf* list) noexcept {
  pieces_set = count;
  buffer_set = *list;
}

TEST_F(WorkCallsOf, AQueuePairThatSetListsSetOnePieceToo) {
  set_one_sge<note_list>(&qp_, 1, 2, 3);
  EXPECT_EQ(pieces_set, 1u);
  EXPECT_EQ(sge_set.lkey, 1u);
  EXPECT_EQ(sge_set.addr, 2u);
  EXPECT_EQ(sge_set.length, 3u);
  set_one_buffer<note_buffers>(&qp_, &sge_set, 4);
  EXPECT_EQ(pieces_set, 1u);
  EXPECT_EQ(buffer_set.addr, &sge_set);
  EXPECT_EQ(buffer_set.length, 4u);
}

TEST_F(WorkCallsOf, AQueuePairFailTheBatchWhenItWasMadeWithoutThem) {
  set(IBV_QP_EX_WITH_SEND);
  ibv_wr_start(&qp_);
  ibv_wr_rdma_read(&qp_, 1, 2);
  EXPECT_EQ(ibv_wr_complete(&qp_), EOPNOTSUPP);
}

TEST_F(WorkCallsOf, AQueuePairFailTheBatchWhereItsProviderHasNone) {
  set(~std::uint64_t{0});
  ibv_sge piece{};
  ibv_data_buf bytes{};
  ibv_mw_bind_info info{};
  ibv_wr_send_imm(&qp_, 0);
  ibv_wr_send_inv(&qp_, 0);
  ibv_wr_send_tso(&qp_, nullptr, 0, 0);
  ibv_wr_rdma_write(&qp_, 0, 0);
  ibv_wr_rdma_write_imm(&qp_, 0, 0, 0);
  ibv_wr_atomic_cmp_swp(&qp_, 0, 0, 0, 0);
  ibv_wr_atomic_fetch_add(&qp_, 0, 0, 0);
  ibv_wr_atomic_write(&qp_, 0, 0, nullptr);
  ibv_wr_flush(&qp_, 0, 0, 0, 0, 0);
  ibv_wr_local_inv(&qp_, 0);
  ibv_wr_bind_mw(&qp_, nullptr, 0, &info);
  ibv_wr_set_ud_addr(&qp_, nullptr, 0, 0);
  ibv_wr_set_xrc_srqn(&qp_, 0);
  ibv_wr_set_sge(&qp_, 0, 0, 0);
  ibv_wr_set_sge_list(&qp_, 1, &piece);
  ibv_wr_set_inline_data(&qp_, nullptr, 0);
  ibv_wr_set_inline_data_list(&qp_, 1, &bytes);
  EXPECT_EQ(calls_refused, 17);
  EXPECT_EQ(calls_made, 0);
}

}  // namespace
}  // namespace verbatim
