// SPDX-License-Identifier: BSD-2-Clause
// A device that goes while it is in use: what its driver will never complete is flushed. The real
// one does not go while somebody has it open, so here alone the kernel plays that.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cerrno>

#include "providers/rxe/completion.hpp"
#include "providers/rxe/hot.hpp"
#include "providers/rxe/queue_pairs.hpp"
#include "providers/rxe/send.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit_rxe/fake_rxe.hpp"

namespace verbatim::rxe_test {
namespace {

constexpr std::uint32_t kGoneQpn = 33;

class RxeGone : public ::testing::Test {
 protected:
  void SetUp() override {
    for (rxe::Cq* const cq : {&cq_, &other_cq_}) cq->plain.context = fake_.context.handle();
    ASSERT_EQ(cq_.ring.map(ring_.fd(), ring_.place(), sizeof(ib_uverbs_wc)), 0);
    ASSERT_EQ(other_cq_.ring.map(other_ring_.fd(), other_ring_.place(), sizeof(ib_uverbs_wc)), 0);
    introduce(fake_, kGoneQpn, cq_, cq_);
    ASSERT_EQ(::pipe(events_), 0);
    fake_.context.extended.context.async_fd = events_[0];
  }
  ~RxeGone() override {
    ::close(events_[0]);
    ::close(events_[1]);
  }
  /// As create_qp ends.
  void introduce(FakeQueues& queues, std::uint32_t qpn, rxe::Cq& send_cq, rxe::Cq& recv_cq) {
    rxe::Qp& qp = *queues.qp;
    qp.plain.send_cq = &send_cq.plain;
    qp.plain.recv_cq = &recv_cq.plain;
    qp.plain.qp_num = qpn;
    qp.number = fake_.context.objects.add(uverbs::Kind::kQp, static_cast<uverbs::Qp*>(&qp));
    fake_.context.objects.name(qp.number, qpn);
  }
  /// Not signaled.
  static int send(FakeQueues& queues, std::uint64_t wr_id, ibv_wr_opcode opcode = IBV_WR_SEND) {
    ibv_send_wr wr{};
    ibv_send_wr* bad = nullptr;
    ibv_sge word{0x1000, 8, 1};
    wr.wr_id = wr_id;
    wr.opcode = opcode;
    wr.sg_list = &word;
    wr.num_sge = opcode == IBV_WR_LOCAL_INV ? 0 : 1;
    return rxe::post_send(queues.plain(), &wr, &bad);
  }
  int send(std::uint64_t wr_id, ibv_wr_opcode opcode = IBV_WR_SEND) {
    return send(fake_, wr_id, opcode);
  }
  static int receive(FakeQueues& queues, std::uint64_t wr_id) {
    ibv_recv_wr wr{};
    ibv_recv_wr* bad = nullptr;
    wr.wr_id = wr_id;
    return rxe::post_recv(queues.plain(), &wr, &bad);
  }
  int receive(std::uint64_t wr_id) { return receive(fake_, wr_id); }
  void complete(std::uint64_t wr_id) {
    ib_uverbs_wc made{};
    made.wr_id = wr_id;
    made.qp_num = kGoneQpn;
    ASSERT_TRUE(ring_.produce(&made, sizeof made));
  }
  void hear_fatal() {
    const ib_uverbs_async_event_desc record{0, IBV_EVENT_DEVICE_FATAL, 0};
    ASSERT_EQ(::write(events_[1], &record, sizeof record), ssize_t{sizeof record});
    ibv_async_event event{};
    ASSERT_EQ(uverbs::get_async_event(fake_.context, event), 0);
    EXPECT_EQ(event.event_type, IBV_EVENT_DEVICE_FATAL);
  }
  /// The device leaves, and the program hears of it.
  void go() {
    fake_.system.error = EIO;
    hear_fatal();
  }
  int poll(int entries = 8) { return rxe::poll_cq(&cq_.plain, entries, wc_); }
  void expect_flushed(std::initializer_list<std::uint64_t> wr_ids, std::uint32_t qpn = kGoneQpn) {
    ASSERT_EQ(poll(), static_cast<int>(wr_ids.size()));
    const ibv_wc* wc = wc_;
    for (const std::uint64_t wr_id : wr_ids) {
      EXPECT_EQ(wc->wr_id, wr_id);
      EXPECT_EQ(wc->status, IBV_WC_WR_FLUSH_ERR);
      EXPECT_EQ(wc->qp_num, qpn);
      ++wc;
    }
    EXPECT_EQ(poll(), 0) << "once";
  }

  unit::CapturedStderr said_;  ///< that the device has gone is told in a line
  FakeQp fake_{IBV_QPT_RC, 3, IBV_QP_EX_WITH_SEND};
  FakeRing ring_{3, 6};
  FakeRing other_ring_{3, 6};
  rxe::Cq cq_;
  rxe::Cq other_cq_;
  int events_[2] = {-1, -1};
  ibv_wc wc_[8] = {};
};

TEST_F(RxeGone, FlushesWhatIsOutstandingOnceAndInOrderBehindWhatTheDriverCompleted) {
  for (const std::uint64_t wr_id : {1u, 2u, 3u}) ASSERT_EQ(send(wr_id), 0);
  for (const std::uint64_t wr_id : {11u, 12u}) ASSERT_EQ(receive(wr_id), 0);
  fake_.send.consume();
  complete(1);
  go();
  ASSERT_EQ(poll(1), 1);
  EXPECT_EQ(wc_[0].wr_id, 1u);
  EXPECT_EQ(wc_[0].status, IBV_WC_SUCCESS);
  expect_flushed({2, 3, 11, 12});
  EXPECT_EQ(rxe::destroy_qp(*fake_.qp.release()), 0);
}

TEST_F(RxeGone, GivesNoMoreAtOnceThanWasAskedFor) {
  for (const std::uint64_t wr_id : {1u, 2u}) ASSERT_EQ(send(wr_id), 0);
  ASSERT_EQ(receive(11), 0);
  go();
  for (const std::uint64_t wr_id : {1u, 2u, 11u}) {
    ASSERT_EQ(poll(1), 1);
    EXPECT_EQ(wc_[0].wr_id, wr_id);
  }
  EXPECT_EQ(poll(1), 0);
}

TEST_F(RxeGone, NamesEachOperation) {
  const std::pair<ibv_wr_opcode, ibv_wc_opcode> kOperations[] = {
      {IBV_WR_SEND_WITH_IMM, IBV_WC_SEND},
      {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE},
      {IBV_WR_RDMA_READ, IBV_WC_RDMA_READ},
      {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP},
      {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD},
      {IBV_WR_LOCAL_INV, IBV_WC_LOCAL_INV}};
  for (const auto& [asked, told] : kOperations) ASSERT_EQ(send(told, asked), 0);
  ASSERT_EQ(receive(IBV_WC_RECV), 0);
  go();
  ASSERT_EQ(poll(), 7);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(wc_[i].opcode, static_cast<int>(wc_[i].wr_id));
}

TEST_F(RxeGone, FlushesToEachQueueItsOwn) {
  FakeQueues other(fake_.context);
  introduce(other, 34, other_cq_, cq_);
  ASSERT_EQ(send(other, 1), 0);
  ASSERT_EQ(receive(other, 2), 0);
  go();
  expect_flushed({2}, 34);
  ASSERT_EQ(rxe::poll_cq(&other_cq_.plain, 8, wc_), 1);
  EXPECT_EQ(wc_[0].wr_id, 1u);
}

// IBTA 10.2.9: what waits in a shared queue belongs to no queue pair.
TEST_F(RxeGone, LeavesReceivesOfASharedQueueAlone) {
  FakeRing shared(2, 7);
  rxe::Srq srq;
  srq.plain.context = fake_.context.handle();
  srq.max_sge = 4;
  ASSERT_EQ(srq.ring.map(shared.fd(), shared.place(), sizeof(rxe::ReceiveElement)), 0);
  fake_.qp->receive_ring.unmap();
  fake_.qp->plain.srq = &srq.plain;
  ibv_recv_wr wr{};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(rxe::post_srq_recv(&srq.plain, &wr, &bad), 0);
  ASSERT_EQ(send(1), 0);
  go();
  expect_flushed({1});
}

TEST_F(RxeGone, TheCursorFlushesToo) {
  ASSERT_EQ(send(1), 0);
  ASSERT_EQ(receive(2), 0);
  go();
  ibv_poll_cq_attr attr{};
  rxe::wire_cursor(cq_);
  ASSERT_EQ(ibv_start_poll(&cq_.extended, &attr), 0);
  EXPECT_EQ(cq_.extended.wr_id, 1u);
  EXPECT_EQ(cq_.extended.status, IBV_WC_WR_FLUSH_ERR);
  ASSERT_EQ(ibv_next_poll(&cq_.extended), 0);
  EXPECT_EQ(cq_.extended.wr_id, 2u);
  EXPECT_EQ(ibv_next_poll(&cq_.extended), ENOENT);
  ibv_end_poll(&cq_.extended);
}

// Who has no thread for events hears of it from the doorbell.
TEST_F(RxeGone, PostingGoesOnAndIsFlushed) {
  fake_.system.error = EIO;
  EXPECT_EQ(send(1), 0);
  ibv_qp_ex* const calls = fake_.extended();
  ibv_wr_start(calls);
  calls->wr_id = 2;
  calls->wr_flags = 0;
  ibv_wr_send(calls);
  EXPECT_EQ(ibv_wr_complete(calls), 0);
  EXPECT_EQ(receive(3), 0);
  expect_flushed({1, 2, 3});
  for (std::uint64_t wr_id = 10; wr_id < 17; ++wr_id) EXPECT_EQ(send(wr_id), 0);
  EXPECT_EQ(send(17), ENOMEM) << "the queue is as long as ever";
  expect_flushed({10, 11, 12, 13, 14, 15, 16});
}

TEST_F(RxeGone, IsInErrorAndCanBeLedThereAndNowhereElse) {
  ASSERT_EQ(send(1), 0);
  go();
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(uverbs::query_qp(*fake_.qp, attr, IBV_QP_STATE, init), 0);
  EXPECT_EQ(attr.qp_state, IBV_QPS_ERR);
  EXPECT_EQ(attr.cur_qp_state, IBV_QPS_ERR);
  EXPECT_EQ(uverbs::query_qp(*fake_.qp, attr, IBV_QP_STATE | IBV_QP_AV, init), EIO)
      << "nobody knows the rest any more";
  attr.qp_state = IBV_QPS_ERR;
  EXPECT_EQ(rxe::modify_qp(*fake_.qp, attr, IBV_QP_STATE), 0);
  attr.qp_state = IBV_QPS_RESET;
  EXPECT_EQ(rxe::modify_qp(*fake_.qp, attr, IBV_QP_STATE), EIO);
  EXPECT_EQ(fake_.qp->plain.state, IBV_QPS_ERR);
  EXPECT_EQ(receive(2), 0);
  expect_flushed({1, 2});
}

TEST_F(RxeGone, IsToldInOneLine) {
  ASSERT_EQ(send(1), 0);
  go();
  expect_flushed({1});
  ASSERT_EQ(send(2), 0);
  expect_flushed({2});
  EXPECT_EQ(said_.lines(), 1);
}

// A program may poll between the calls that build a batch.
TEST_F(RxeGone, PollingDoesNotWaitForABatchOfItsOwn) {
  ASSERT_EQ(send(1), 0);
  ASSERT_EQ(receive(2), 0);
  go();
  ibv_wr_start(fake_.extended());
  expect_flushed({2});
  ibv_wr_abort(fake_.extended());
  expect_flushed({1});
}

// Another thread asks the device for another reason, and has forgotten the doubt that the
// doorbell's answer raised: an error would say that the request was not posted, and it is flushed.
TEST_F(RxeGone, IsFoundByADoorbellWhoseDoubtAnotherHasForgotten) {
  ASSERT_EQ(receive(1), 0);
  fake_.system.error = EIO;
  ASSERT_EQ(fake_.context.command_channel.presence(), uverbs::Presence::kHere);
  EXPECT_EQ(rxe::bell_unheard(*fake_.qp, EIO), 0);
  expect_flushed({1});
}

// Neither an event nor an errno is proof by itself: a device that answers is there.
TEST_F(RxeGone, IsNotADeviceThatAnswers) {
  ASSERT_EQ(receive(1), 0);
  hear_fatal();
  EXPECT_EQ(poll(), 0);
  EXPECT_EQ(said_.lines(), 0);
  fake_.system.bell = EIO;
  EXPECT_EQ(send(2), 0);
  ASSERT_EQ(fake_.system.led.size(), 1u);
  EXPECT_EQ(fake_.system.led[0].qp_state, IBV_QPS_ERR) << "where the driver flushes it";
  fake_.send.consume();
  EXPECT_EQ(poll(), 0);
  EXPECT_EQ(said_.lines(), 1) << "that nobody heard";
  // ... and when it goes after all, that is heard anew.
  fake_.system.error = EIO;
  EXPECT_EQ(send(3), 0);
  expect_flushed({3, 1});
}

}  // namespace
}  // namespace verbatim::rxe_test
