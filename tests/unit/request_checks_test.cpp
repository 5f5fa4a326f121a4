// SPDX-License-Identifier: BSD-2-Clause
// What posting a send request refuses at once (man ibv_post_send).
#include "runtime/verbs/software/request_checks.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace verbatim {
namespace {

constexpr int kOfForm = EPERM;

struct Queue {
  ibv_qp_state stands = IBV_QPS_RTS;
  bool reads_are_agreed_on = true;
  bool has_form = true;
  bool full = false;
  mutable int told_early = 0;
  mutable std::uint64_t told_inline = 0;
  mutable int told_full = 0;

  ibv_qp_state state() const { return stands; }
  bool has_operation(unsigned opcode) const {
    return has_opcode(opcodes_of(IBV_QPT_RC) & ~(1u << IBV_WR_FLUSH), opcode);
  }
  std::uint32_t max_sge() const { return 2; }
  std::uint32_t max_inline() const { return 100; }
  std::uint32_t max_rd_atomic() const { return reads_are_agreed_on ? 1 : 0; }
  int check_form(const ibv_send_wr&) const { return has_form ? 0 : kOfForm; }
  bool is_full() const { return full; }
  void tell_early() const { ++told_early; }
  void tell_long_inline(std::uint64_t bytes) const { told_inline = bytes; }
  void tell_full() const { ++told_full; }
};

class RequestChecks : public ::testing::Test {
 protected:
  RequestChecks() {
    wr_.opcode = IBV_WR_SEND;
    wr_.sg_list = list_;
    wr_.num_sge = 2;
  }
  int check() const { return check_send_request(queue_, wr_); }

  Queue queue_;
  ibv_sge list_[2] = {{0, 40, 0}, {0, 60, 0}};
  ibv_send_wr wr_{};
};

TEST_F(RequestChecks, TakeRequestsFromRtsOn) {
  // IBTA 10.8.2; in SQE and ERR they complete with errors.
  for (const ibv_qp_state state : {IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_SQE, IBV_QPS_ERR}) {
    queue_.stands = state;
    EXPECT_EQ(check(), 0) << state;
  }
  EXPECT_EQ(queue_.told_early, 0);
  for (const ibv_qp_state state : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR}) {
    queue_.stands = state;
    EXPECT_EQ(check(), EINVAL) << state;
  }
  EXPECT_EQ(queue_.told_early, 3);
}

TEST_F(RequestChecks, TakeOperationsThatTheQueuePairHas) {
  wr_.opcode = IBV_WR_FLUSH;
  EXPECT_EQ(check(), EINVAL);
  wr_.opcode = IBV_WR_TSO;
  EXPECT_EQ(check(), EINVAL);
}

TEST_F(RequestChecks, TakeListsThatAreThereAndNotTooLong) {
  wr_.num_sge = 3;
  EXPECT_EQ(check(), EINVAL);
  wr_.num_sge = -1;
  EXPECT_EQ(check(), EINVAL);
  wr_.num_sge = 2;
  wr_.sg_list = nullptr;
  EXPECT_EQ(check(), EINVAL);
  wr_.num_sge = 0;
  EXPECT_EQ(check(), 0);
}

TEST_F(RequestChecks, TakeReadsAndAtomicsWherePeersHaveAgreedOnSome) {
  for (const ibv_wr_opcode opcode :
       {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    wr_.opcode = opcode;
    queue_ = {};
    EXPECT_EQ(check(), 0);
    queue_.reads_are_agreed_on = false;
    EXPECT_EQ(check(), EINVAL);
    queue_.stands = IBV_QPS_ERR;
    EXPECT_EQ(check(), 0) << "it is flushed";
  }
  wr_.opcode = IBV_WR_RDMA_WRITE;
  queue_.stands = IBV_QPS_RTS;
  EXPECT_EQ(check(), 0);
}

TEST_F(RequestChecks, TakeInlineBytesUpToTheLimit) {
  list_[1].length = 61;
  EXPECT_EQ(check(), 0);
  wr_.send_flags = IBV_SEND_INLINE;
  EXPECT_EQ(check(), EINVAL);
  EXPECT_EQ(queue_.told_inline, 101u);
  list_[1].length = 60;
  EXPECT_EQ(check(), 0);
  list_[0].length = list_[1].length = ~0u;
  EXPECT_EQ(check(), EINVAL) << "the sum of both would be small in 32 bits";
}

TEST_F(RequestChecks, TakeNothingInlineThatIsToBeWritten) {
  wr_.opcode = IBV_WR_RDMA_READ;
  wr_.send_flags = IBV_SEND_INLINE;
  EXPECT_EQ(check(), EINVAL);
  EXPECT_EQ(queue_.told_inline, 0u);
}

TEST_F(RequestChecks, TakeAsMuchAsTheQueueHolds) {
  queue_.full = true;
  EXPECT_EQ(check(), ENOMEM);
  EXPECT_EQ(queue_.told_full, 1);
}

TEST_F(RequestChecks, TellWhatIsWrongWithARequestBeforeWhatIsFull) {
  queue_.full = true;
  queue_.has_form = false;
  EXPECT_EQ(check(), kOfForm);
  wr_.send_flags = IBV_SEND_INLINE;
  list_[0].length = 400;
  EXPECT_EQ(check(), EINVAL) << "the list before what only some operations demand";
  EXPECT_EQ(queue_.told_full, 0);
  queue_.stands = IBV_QPS_INIT;
  wr_.opcode = IBV_WR_FLUSH;
  EXPECT_EQ(check(), EINVAL);
  EXPECT_EQ(queue_.told_early, 1) << "the state before all else";
}

TEST(Datagrams, AreForSomebodyOfTheirOwnContext) {
  ibv_context here{};
  ibv_context there{};
  ibv_ah ah{};
  ah.context = &here;
  ibv_send_wr wr{};
  EXPECT_FALSE(is_addressed(wr, &here));
  wr.wr.ud.ah = &ah;
  EXPECT_TRUE(is_addressed(wr, &here));
  EXPECT_FALSE(is_addressed(wr, &there));
}

TEST(FormsOfOperations, AreWhatTheyDemand) {
  ibv_sge list[2] = {{0, 4, 0}, {0, 4, 0}};
  ibv_send_wr wr{};
  wr.sg_list = list;
  wr.num_sge = 2;
  EXPECT_TRUE(has_form_of_operation(wr));
  wr.opcode = IBV_WR_LOCAL_INV;
  EXPECT_FALSE(has_form_of_operation(wr)) << "it has no bytes";
  wr.opcode = IBV_WR_ATOMIC_WRITE;
  EXPECT_TRUE(has_form_of_operation(wr));
  list[0].length = 5;
  EXPECT_FALSE(has_form_of_operation(wr)) << "it has 8 bytes";
  wr.opcode = IBV_WR_FLUSH;
  wr.wr.atomic.swap = IBV_FLUSH_GLOBAL | IBV_FLUSH_RANGE << 8;
  EXPECT_FALSE(has_form_of_operation(wr)) << "it has no bytes";
  wr.num_sge = 0;
  EXPECT_TRUE(has_form_of_operation(wr));
  wr.opcode = IBV_WR_LOCAL_INV;
  EXPECT_TRUE(has_form_of_operation(wr));
}

TEST(FormsOfOperations, OfAFlushHaveATypeAndALevel) {
  constexpr unsigned kBoth = IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT;
  EXPECT_TRUE(is_flush(kBoth, IBV_FLUSH_RANGE));
  EXPECT_TRUE(is_flush(IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR));
  EXPECT_FALSE(is_flush(0, IBV_FLUSH_RANGE));
  EXPECT_FALSE(is_flush(kBoth + 1, IBV_FLUSH_RANGE));
  EXPECT_FALSE(is_flush(kBoth, IBV_FLUSH_MR + 1));
}

}  // namespace
}  // namespace verbatim
