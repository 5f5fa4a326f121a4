// SPDX-License-Identifier: BSD-2-Clause
// A request that failed on our own side, which the driver of Linux 6.12 flushes like those behind
// it: what its slot says comes out of the completion queue. And the slots that it would take for
// requests under way when a queue drains.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "providers/rxe/completion.hpp"
#include "providers/rxe/hot.hpp"
#include "providers/rxe/queue_pairs.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit_rxe/fake_rxe.hpp"

namespace verbatim::rxe_test {
namespace {

constexpr std::uint32_t kQpn = 33;
constexpr std::uint32_t kPending = 2;
constexpr std::uint32_t kFailed = 4;

class RxeHiddenError : public ::testing::Test {
 protected:
  void SetUp() override {
    for (rxe::Cq* const cq : {&cq_, &receive_cq_}) cq->plain.context = fake_.context.handle();
    ASSERT_EQ(cq_.ring.map(ring_.fd(), ring_.place(), sizeof(ib_uverbs_wc)), 0);
    ASSERT_EQ(receive_cq_.ring.map(receive_ring_.fd(), receive_ring_.place(), sizeof(ib_uverbs_wc)),
              0);
    introduce(fake_, kQpn, cq_, cq_);
    fake_.system.state = IBV_QPS_ERR;
  }
  /// As create_qp ends.
  void introduce(FakeQueues& queues, std::uint32_t qpn, rxe::Cq& send_cq, rxe::Cq& recv_cq) {
    rxe::Qp& qp = *queues.qp;
    qp.plain.send_cq = &send_cq.plain;
    qp.plain.recv_cq = &recv_cq.plain;
    qp.plain.qp_num = qpn;
    qp.number = fake_.context.objects.add(uverbs::Kind::kQp, static_cast<uverbs::Qp*>(&qp));
    rxe::begin_life(qp, &send_cq.plain, &recv_cq.plain);
    fake_.context.objects.name(qp.number, qpn);
  }
  static void post(FakeQueues& queues, std::uint64_t wr_id) {
    ibv_send_wr wr{};
    ibv_send_wr* bad = nullptr;
    wr.wr_id = wr_id;
    wr.opcode = IBV_WR_SEND;
    ASSERT_EQ(rxe::post_send(queues.plain(), &wr, &bad), 0);
  }
  void post(std::uint64_t wr_id) { post(fake_, wr_id); }
  /// The driver takes the oldest request, and leaves in its slot how it ended.
  static void take(FakeQueues& queues, std::uint32_t status, std::uint32_t state) {
    unsigned char* const slot = queues.send.head();
    ASSERT_NE(slot, nullptr);
    std::memcpy(slot + 144, &status, sizeof status);
    std::memcpy(slot + 148, &state, sizeof state);
    queues.send.consume();
  }
  void take(std::uint32_t status, std::uint32_t state) { take(fake_, status, state); }
  std::uint32_t state_of_slot(std::uint32_t index) {
    std::uint32_t state = 0;
    std::memcpy(&state, fake_.send.slot(index) + 148, sizeof state);
    return state;
  }
  void complete(std::uint64_t wr_id, std::uint32_t status = IBV_WC_WR_FLUSH_ERR,
                std::uint32_t qpn = kQpn) {
    ib_uverbs_wc made{};
    made.wr_id = wr_id;
    made.status = status;
    made.qp_num = qpn;
    ASSERT_TRUE(ring_.produce(&made, sizeof made));
  }
  int poll() { return rxe::poll_cq(&cq_.plain, 8, wc_); }
  ibv_wc_status poll_one() {
    return rxe::poll_cq(&cq_.plain, 1, wc_) == 1 ? wc_[0].status : IBV_WC_GENERAL_ERR;
  }
  /// One pending, one that fails, one behind it.
  static void fail_second(FakeQueues& queues, std::uint32_t status) {
    for (const std::uint64_t wr_id : {1u, 2u, 3u}) post(queues, wr_id);
    take(queues, 0, kPending);
    take(queues, status, kFailed);
    take(queues, IBV_WC_WR_FLUSH_ERR, kFailed);
  }
  /// ... all of them flushed.
  void fail_second(std::uint32_t status) {
    fail_second(fake_, status);
    for (const std::uint64_t wr_id : {1u, 2u, 3u}) complete(wr_id);
  }
  int lead(ibv_qp_state state) {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    return rxe::modify_qp(*fake_.qp, attr, IBV_QP_STATE);
  }

  FakeQp fake_;
  FakeRing ring_{3, 6};
  FakeRing receive_ring_{3, 6};
  rxe::Cq cq_;
  rxe::Cq receive_cq_;
  ibv_wc wc_[8] = {};
};

TEST_F(RxeHiddenError, IsToldInTheCompletionOfItsRequestAndOfNoOther) {
  fail_second(IBV_WC_MW_BIND_ERR);
  ASSERT_EQ(poll(), 3);
  EXPECT_EQ(wc_[0].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(wc_[1].status, IBV_WC_MW_BIND_ERR);
  EXPECT_EQ(wc_[2].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(fake_.context.troubles, 1u) << "as any error, it is looked after";
}

TEST_F(RxeHiddenError, IsToldByTheCursorToo) {
  fail_second(IBV_WC_LOC_PROT_ERR);
  ibv_poll_cq_attr attr{};
  rxe::wire_cursor(cq_);
  ASSERT_EQ(ibv_start_poll(&cq_.extended, &attr), 0);
  EXPECT_EQ(cq_.extended.status, IBV_WC_WR_FLUSH_ERR);
  ASSERT_EQ(ibv_next_poll(&cq_.extended), 0);
  EXPECT_EQ(cq_.extended.status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(cq_.extended.wr_id, 2u);
  ASSERT_EQ(ibv_next_poll(&cq_.extended), 0);
  EXPECT_EQ(cq_.extended.status, IBV_WC_WR_FLUSH_ERR);
  ibv_end_poll(&cq_.extended);
}

TEST_F(RxeHiddenError, IsToldOnceThoughManyHaveItsNumber) {
  for (int i = 0; i < 3; ++i) post(7);
  take(IBV_WC_LOC_QP_OP_ERR, kFailed);
  take(IBV_WC_WR_FLUSH_ERR, kFailed);
  take(IBV_WC_WR_FLUSH_ERR, kFailed);
  for (int i = 0; i < 3; ++i) complete(7);
  EXPECT_EQ(poll_one(), IBV_WC_LOC_QP_OP_ERR);
  EXPECT_EQ(poll_one(), IBV_WC_WR_FLUSH_ERR);
  complete(1, IBV_WC_WR_FLUSH_ERR, 34);  // another queue pair's, between those of this one
  EXPECT_EQ(poll_one(), IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(poll_one(), IBV_WC_WR_FLUSH_ERR);
}

// 6.1 completes it so; what is flushed behind it is flushed.
TEST_F(RxeHiddenError, ThatTheDriverHasToldIsNotToldAgain) {
  post(7);
  post(7);
  take(IBV_WC_LOC_QP_OP_ERR, kFailed);
  take(IBV_WC_WR_FLUSH_ERR, kFailed);
  complete(7, IBV_WC_LOC_QP_OP_ERR);
  complete(7);
  ASSERT_EQ(poll(), 2);
  EXPECT_EQ(wc_[0].status, IBV_WC_LOC_QP_OP_ERR);
  EXPECT_EQ(wc_[1].status, IBV_WC_WR_FLUSH_ERR);
}

// ... and is in ERR only afterwards.
TEST_F(RxeHiddenError, ThatTheDriverTellsBeforeItFailsIsNotToldAgain) {
  post(7);
  post(7);
  take(IBV_WC_LOC_QP_OP_ERR, kFailed);
  take(IBV_WC_WR_FLUSH_ERR, kFailed);
  fake_.system.state = IBV_QPS_RTS;
  complete(7, IBV_WC_LOC_QP_OP_ERR);
  EXPECT_EQ(poll_one(), IBV_WC_LOC_QP_OP_ERR);
  fake_.system.state = IBV_QPS_ERR;
  complete(7);
  EXPECT_EQ(poll_one(), IBV_WC_WR_FLUSH_ERR);
}

TEST_F(RxeHiddenError, ThatTheDriverTellsAfterItWasFoundIsNotToldAgain) {
  post(7);
  post(7);
  take(IBV_WC_LOC_QP_OP_ERR, kFailed);
  take(IBV_WC_WR_FLUSH_ERR, kFailed);
  complete(1);  // a receive's
  EXPECT_EQ(poll_one(), IBV_WC_WR_FLUSH_ERR);
  complete(7, IBV_WC_LOC_QP_OP_ERR);
  complete(7);
  EXPECT_EQ(poll_one(), IBV_WC_LOC_QP_OP_ERR);
  EXPECT_EQ(poll_one(), IBV_WC_WR_FLUSH_ERR);
}

TEST_F(RxeHiddenError, OfEachQueuePairIsToldThoughTheyAreFlushedInTurns) {
  FakeQueues other(fake_.context);
  introduce(other, 34, cq_, cq_);
  fail_second(fake_, IBV_WC_MW_BIND_ERR);
  fail_second(other, IBV_WC_LOC_PROT_ERR);
  for (const std::uint64_t wr_id : {1u, 2u, 3u}) {
    complete(wr_id);
    complete(wr_id, IBV_WC_WR_FLUSH_ERR, 34);
  }
  ASSERT_EQ(poll(), 6);
  for (const int i : {0, 1, 4, 5}) EXPECT_EQ(wc_[i].status, IBV_WC_WR_FLUSH_ERR) << i;
  EXPECT_EQ(wc_[2].status, IBV_WC_MW_BIND_ERR);
  EXPECT_EQ(wc_[3].status, IBV_WC_LOC_PROT_ERR);
}

TEST_F(RxeHiddenError, IsSearchedOnceForEachQueuePairThoughTheyAreFlushedInTurns) {
  FakeQueues other(fake_.context);
  introduce(other, 34, cq_, cq_);
  for (int round = 0; round < 3; ++round) {
    for (const std::uint32_t qpn : {kQpn, 34u}) complete(1, IBV_WC_WR_FLUSH_ERR, qpn);
  }
  ASSERT_EQ(poll(), 6);
  EXPECT_EQ(fake_.system.asked, 2) << "whether each is in ERR";
}

TEST_F(RxeHiddenError, OfOneThatIsGoneIsNotToldOfTheNextWithItsNumber) {
  fail_second(IBV_WC_MW_BIND_ERR);
  EXPECT_EQ(poll_one(), IBV_WC_WR_FLUSH_ERR) << "and by now it is known";
  ASSERT_EQ(rxe::destroy_qp(*fake_.qp.release()), 0);
  FakeQueues next(fake_.context);
  introduce(next, kQpn, receive_cq_, cq_);
  complete(2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(poll_one(), IBV_WC_WR_FLUSH_ERR) << i;
  Failure failure;
  EXPECT_EQ(uverbs::explain_qp(*next.qp, nullptr, failure), 0);
  EXPECT_EQ(failure.cause, Cause::kFirstUnseen) << "nothing of the other's is noted here";
}

// Its completions still lie in the queue, and have the same wr_id.
TEST_F(RxeHiddenError, IsNotTakenByACompletionOfOneThatIsGone) {
  complete(2);
  ASSERT_EQ(rxe::destroy_qp(*fake_.qp.release()), 0);
  FakeQueues next(fake_.context);
  introduce(next, kQpn, cq_, cq_);
  fail_second(next, IBV_WC_MW_BIND_ERR);
  for (const std::uint64_t wr_id : {1u, 2u, 3u}) complete(wr_id);
  ASSERT_EQ(poll(), 4);
  for (const int i : {0, 1, 3}) EXPECT_EQ(wc_[i].status, IBV_WC_WR_FLUSH_ERR) << i;
  EXPECT_EQ(wc_[2].status, IBV_WC_MW_BIND_ERR);
}

// A completion in error that says so by itself is nobody's who came later, either.
TEST_F(RxeHiddenError, OfOneThatIsGoneIsNotBlamedOnTheNextWithItsNumber) {
  fake_.qp->plain.recv_cq = &receive_cq_.plain;
  complete(2, IBV_WC_RETRY_EXC_ERR);
  ib_uverbs_wc received{};
  received.status = IBV_WC_LOC_PROT_ERR;
  received.qp_num = kQpn;
  ASSERT_TRUE(receive_ring_.produce(&received, sizeof received));
  ASSERT_EQ(rxe::destroy_qp(*fake_.qp.release()), 0);
  FakeQueues next(fake_.context);
  introduce(next, kQpn, cq_, receive_cq_);
  fake_.system.state = IBV_QPS_RTS;
  const unit::CapturedStderr said;
  EXPECT_EQ(poll_one(), IBV_WC_RETRY_EXC_ERR);
  ASSERT_EQ(rxe::poll_cq(&receive_cq_.plain, 1, wc_), 1);
  Failure failure;
  EXPECT_EQ(uverbs::explain_qp(*next.qp, nullptr, failure), ENODATA);
  EXPECT_EQ(said.lines(), 0);
  complete(3, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(poll_one(), IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(said.lines(), 1) << "and its own is";
}

TEST_F(RxeHiddenError, OfAnEarlierLifeIsNotBlamedOnTheNext) {
  complete(2, IBV_WC_RETRY_EXC_ERR);
  ASSERT_EQ(lead(IBV_QPS_RESET), 0);
  const unit::CapturedStderr said;
  EXPECT_EQ(poll_one(), IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(said.lines(), 0);
}

TEST_F(RxeHiddenError, IsNotTakenByACompletionOfAnEarlierLife) {
  complete(2);
  ASSERT_EQ(lead(IBV_QPS_RESET), 0);
  fake_.qp->plain.state = IBV_QPS_RTS;
  fail_second(IBV_WC_MW_BIND_ERR);
  fake_.system.state = IBV_QPS_ERR;
  ASSERT_EQ(poll(), 4);
  for (const int i : {0, 1, 3}) EXPECT_EQ(wc_[i].status, IBV_WC_WR_FLUSH_ERR) << i;
  EXPECT_EQ(wc_[2].status, IBV_WC_MW_BIND_ERR);
}

TEST_F(RxeHiddenError, IsOfNoReceive) {
  fake_.qp->plain.recv_cq = &receive_cq_.plain;
  post(7);
  take(IBV_WC_LOC_QP_OP_ERR, kFailed);
  ib_uverbs_wc made{};
  made.wr_id = 7;
  made.status = IBV_WC_WR_FLUSH_ERR;
  made.qp_num = kQpn;
  ASSERT_TRUE(receive_ring_.produce(&made, sizeof made));
  ASSERT_EQ(rxe::poll_cq(&receive_cq_.plain, 1, wc_), 1);
  EXPECT_EQ(fake_.system.asked, 0);
  EXPECT_EQ(wc_[0].status, IBV_WC_WR_FLUSH_ERR);
  complete(7);
  EXPECT_EQ(poll_one(), IBV_WC_LOC_QP_OP_ERR);
}

TEST_F(RxeHiddenError, IsSearchedOnceForARun) {
  for (std::uint64_t i = 0; i < 5; ++i) complete(i);
  ASSERT_EQ(poll(), 5);
  EXPECT_EQ(fake_.system.asked, 1) << "whether it is in ERR";
  complete(5);
  ASSERT_EQ(poll(), 1);
  EXPECT_EQ(fake_.system.asked, 1);
}

TEST_F(RxeHiddenError, OfAnEarlierLifeIsForgotten) {
  post(7);
  take(IBV_WC_LOC_QP_OP_ERR, kFailed);
  ASSERT_EQ(lead(IBV_QPS_RESET), 0);
  complete(7);
  EXPECT_EQ(poll_one(), IBV_WC_WR_FLUSH_ERR);
  // And what was searched for in vain then is searched for again.
  ASSERT_EQ(lead(IBV_QPS_RESET), 0);
  fake_.qp->plain.state = IBV_QPS_RTS;
  post(8);
  take(IBV_WC_LOC_PROT_ERR, kFailed);
  fake_.system.state = IBV_QPS_ERR;
  complete(8);
  EXPECT_EQ(poll_one(), IBV_WC_LOC_PROT_ERR);
}

// Somebody builds requests while it is reset, so that the slots cannot be looked at.
TEST_F(RxeHiddenError, OfAnEarlierLifeIsNotBelievedWhileItsSlotsAreNotClean) {
  post(7);
  take(IBV_WC_LOC_QP_OP_ERR, kFailed);
  fake_.qp->send_lock.lock();
  ASSERT_EQ(lead(IBV_QPS_RESET), 0);
  fake_.qp->send_lock.unlock();
  fake_.system.state = IBV_QPS_ERR;
  complete(7);
  EXPECT_EQ(poll_one(), IBV_WC_WR_FLUSH_ERR);
}

TEST_F(RxeHiddenError, OfAnEarlierLifeIsForgottenWithTheNextMove) {
  post(7);
  take(IBV_WC_LOC_QP_OP_ERR, kFailed);
  fake_.qp->send_lock.lock();
  ASSERT_EQ(lead(IBV_QPS_RESET), 0);
  fake_.qp->send_lock.unlock();
  ASSERT_EQ(lead(IBV_QPS_RTR), 0);
  ASSERT_EQ(lead(IBV_QPS_RTS), 0);
  EXPECT_EQ(state_of_slot(0), 0u);
  post(7);
  take(IBV_WC_LOC_PROT_ERR, kFailed);
  fake_.system.state = IBV_QPS_ERR;
  complete(7);
  EXPECT_EQ(poll_one(), IBV_WC_LOC_PROT_ERR) << "and that of this life is told";
}

TEST_F(RxeHiddenError, ThatIsNoStatusIsNoError) {
  post(7);
  take(5000, kFailed);
  complete(7);
  EXPECT_EQ(poll_one(), IBV_WC_WR_FLUSH_ERR);
}

TEST_F(RxeHiddenError, IsLeftToOthersWhileRequestsAreBeingBuilt) {
  post(7);
  take(IBV_WC_LOC_PROT_ERR, kFailed);
  complete(7);
  fake_.qp->send_lock.lock();
  EXPECT_EQ(poll_one(), IBV_WC_WR_FLUSH_ERR) << "and not a wait for ever";
  fake_.qp->send_lock.unlock();
}

// A ring of eight that went round, with one request posted: seven slots are nobody's.
TEST(RxeDrain, FreeSlotsLookPosted) {
  FakeQp fake;
  ibv_send_wr wr{};
  ibv_send_wr* bad = nullptr;
  wr.opcode = IBV_WR_SEND;
  for (std::uint32_t i = 0; i < 11; ++i) {
    ASSERT_EQ(rxe::post_send(fake.plain(), &wr, &bad), 0);
    std::memcpy(fake.send.head() + 148, &kPending, sizeof kPending);
    if (i != 10) fake.send.consume();
  }
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_SQD;
  ASSERT_EQ(rxe::modify_qp(*fake.qp, attr, IBV_QP_STATE), 0);
  for (std::uint32_t i = 0; i < 8; ++i) {
    std::uint32_t state = 0;
    std::memcpy(&state, fake.send.slot(i) + 148, sizeof state);
    EXPECT_EQ(state, i == 10 % 8 ? kPending : 0u) << i;
  }
}

// The driver refuses RESET for as long as it drains.
TEST(RxeDrain, EndsInResetWhenItIsThroughOrWhenItIsGivenUp) {
  for (const int refused : {3, 1000000}) {
    FakeQp fake;
    fake.qp->plain.state = IBV_QPS_SQD;
    fake.system.resets_refused = refused;
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RESET;
    ASSERT_EQ(rxe::modify_qp(*fake.qp, attr, IBV_QP_STATE), 0) << refused;
    EXPECT_EQ(fake.qp->plain.state, IBV_QPS_RESET);
    const auto& led = fake.system.led;
    EXPECT_EQ(led.back().qp_state, IBV_QPS_RESET);
    EXPECT_EQ(led[led.size() - 2].qp_state, refused == 3 ? IBV_QPS_RESET : IBV_QPS_ERR);
  }
  // With more than the state, and elsewhere, a refusal is a refusal.
  FakeQp asked;
  asked.qp->plain.state = IBV_QPS_SQD;
  asked.system.resets_refused = 1000000;
  ibv_qp_attr more{};
  more.qp_state = IBV_QPS_RESET;
  EXPECT_EQ(rxe::modify_qp(*asked.qp, more, IBV_QP_STATE | IBV_QP_PORT), EINVAL);
  EXPECT_LE(asked.system.led.size(), 1u) << "once";
  EXPECT_EQ(asked.qp->plain.state, IBV_QPS_SQD);
  FakeQp fake;
  fake.system.resets_refused = 1;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  EXPECT_EQ(rxe::modify_qp(*fake.qp, attr, IBV_QP_STATE), EINVAL);
}

// The driver completes a request in error first and moves the queue pair to ERR then, in a thread
// of its own: after the RESET of a program that saw the completion.
TEST(RxeReset, LastsThoughTheDriverFailsTheQueuePairBehindIt) {
  FakeQp fake;
  fake.qp->plain.state = IBV_QPS_RTS;
  fake.system.fails_late = true;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(rxe::modify_qp(*fake.qp, attr, IBV_QP_STATE), 0);
  EXPECT_EQ(fake.system.state, IBV_QPS_RESET) << "of the kernel's";
  EXPECT_EQ(fake.qp->plain.state, IBV_QPS_RESET);
  EXPECT_EQ(fake.system.led.size(), 2u);
}

// ... and maybe after we have looked.
TEST(RxeReset, IsMadeGoodWhereTheStepOutOfItFindsThatItDidNotLast) {
  FakeQp fake;
  fake.qp->plain.state = IBV_QPS_RTS;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(rxe::modify_qp(*fake.qp, attr, IBV_QP_STATE), 0);
  fake.system.state = IBV_QPS_ERR;
  attr.qp_state = IBV_QPS_INIT;
  EXPECT_EQ(rxe::modify_qp(*fake.qp, attr, IBV_QP_STATE), 0);
  EXPECT_EQ(fake.qp->plain.state, IBV_QPS_INIT);
  const auto& led = fake.system.led;
  ASSERT_EQ(led.size(), 4u);
  EXPECT_EQ(led[2].qp_state, IBV_QPS_RESET);
  EXPECT_EQ(led[3].qp_state, IBV_QPS_INIT);
}

// From ERR, as the program knows it, there is no step to INIT.
TEST(RxeReset, IsOrderedForNobodyWhoLeavesItOut) {
  FakeQp fake;
  fake.qp->plain.state = fake.system.state = IBV_QPS_ERR;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  EXPECT_EQ(rxe::modify_qp(*fake.qp, attr, IBV_QP_STATE), EINVAL);
  EXPECT_LE(fake.system.led.size(), 1u);
}

TEST(RxeReset, IsOrderedOnceOfAQueuePairThatHasNotFailed) {
  FakeQp fake;
  fake.qp->plain.state = IBV_QPS_RTS;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(rxe::modify_qp(*fake.qp, attr, IBV_QP_STATE), 0);
  EXPECT_EQ(fake.system.led.size(), 1u);
}

}  // namespace
}  // namespace verbatim::rxe_test
