// SPDX-License-Identifier: BSD-2-Clause
// Where a queue pair stands: the kernel moves it and does not say so, flushes what it finds when a
// connection ends, and nothing that is posted later.
#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "providers/siw/hot.hpp"
#include "runtime/base/log.hpp"
#include "tests/unit_siw/fake_siw.hpp"

namespace verbatim::siw_test {
namespace {

class SiwState : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(fake_.make_qp(), 0); }
  int receive(std::uint64_t wr_id) {
    ibv_recv_wr wr{};
    wr.wr_id = wr_id;
    ibv_recv_wr* bad = nullptr;
    return siw::post_recv(&fake_.qp->plain, &wr, &bad);
  }
  int send(std::uint64_t wr_id) {
    Request request(IBV_WR_SEND);
    request.wr.wr_id = wr_id;
    return post(fake_, request.wr).error;
  }
  int lead_to(ibv_qp_state state) {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    return verbs_provider_siw.modify_qp(*fake_.qp, attr, IBV_QP_STATE);
  }
  ibv_qp_state asked() {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(verbs_provider_siw.query_qp(*fake_.qp, attr, IBV_QP_STATE, init), 0);
    return attr.qp_state;
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
  }
  FakeSiw fake_;
};

TEST_F(SiwState, ThereIsNoSendingBeforeTheDoorbellSaysSo) {
  fake_.system.bell = ENOTCONN;
  EXPECT_EQ(send(1), EINVAL);
  EXPECT_EQ(fake_.sent(0).flags, 0u) << "or it would be sent on connecting";
  EXPECT_EQ(asked(), IBV_QPS_INIT);
  fake_.system.bell = 0;
  EXPECT_EQ(send(2), 0);
  EXPECT_EQ(fake_.sent(0).id, 2u);
  EXPECT_EQ(fake_.qp->plain.state, IBV_QPS_RTS);
  const int rung = fake_.system.rung;
  EXPECT_EQ(send(3), 0);
  EXPECT_EQ(fake_.system.rung, rung + 1) << "asked once";
}

TEST_F(SiwState, AStateThatIsBeingChangedIsAskedForAgain) {
  fake_.system.bells = {ENOTCONN, ENOTCONN};
  EXPECT_EQ(send(1), 0);
  EXPECT_EQ(asked(), IBV_QPS_RTS);
}

TEST_F(SiwState, WhatWePostedAndWhatWeMustAnswerAreToldAsOurs) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(verbs_provider_siw.query_qp(*fake_.qp, attr, IBV_QP_MAX_QP_RD_ATOMIC, init), 0);
  EXPECT_EQ(attr.max_rd_atomic, 4u) << "the driver has them exchanged";
  EXPECT_EQ(attr.max_dest_rd_atomic, 2u);
}

TEST_F(SiwState, AfterACompletionInErrorEverythingFlushes) {
  fake_.connect();
  ASSERT_EQ(receive(1), 0);
  ASSERT_EQ(send(2), 0);
  ASSERT_TRUE(fake_.complete(77, SIW_OP_READ, SIW_WC_REM_ACCESS_ERR));
  ASSERT_EQ(fake_.poll(1), 1);
  EXPECT_TRUE(fake_.system.led.empty()) << "nothing is to be done yet";
  ASSERT_EQ(send(3), 0);
  ASSERT_EQ(fake_.system.led.size(), 1u) << "so that the kernel touches the queues no more";
  EXPECT_EQ(fake_.system.led[0].qp_state, IBV_QPS_ERR);
  ASSERT_EQ(receive(4), 0);
  EXPECT_EQ(fake_.system.led.size(), 1u);
  expect_flushed({2, 3, 1, 4});
  EXPECT_EQ(fake_.sent(0).flags, 0u);
  EXPECT_EQ(fake_.received(0).flags, 0u);
  EXPECT_EQ(fake_.qp->plain.state, IBV_QPS_ERR);
  EXPECT_EQ(asked(), IBV_QPS_ERR);
}

// Posted after the kernel had flushed, and before anybody heard of it.
TEST_F(SiwState, WhatLiesInTheRingsOfAFailedOneIsFlushedByPolling) {
  fake_.connect();
  ASSERT_EQ(receive(1), 0);
  ASSERT_TRUE(fake_.complete(77, SIW_OP_RECEIVE, SIW_WC_WR_FLUSH_ERR));
  ASSERT_EQ(fake_.poll(1), 1) << "there may be more of the kernel's";
  EXPECT_TRUE(fake_.system.led.empty());
  expect_flushed({1});
  EXPECT_EQ(fake_.system.led.size(), 1u);
  EXPECT_FALSE(fake_.context.queue_pairs.has_unsettled());
}

// A program may poll between the calls that build a batch.
TEST_F(SiwState, PollingDoesNotWaitForABatchOfItsOwn) {
  const LockGuard batch(fake_.qp->send_lock);
  ASSERT_TRUE(fake_.complete(77, SIW_OP_RECEIVE, SIW_WC_WR_FLUSH_ERR));
  EXPECT_EQ(fake_.poll(), 1);
  EXPECT_TRUE(fake_.context.queue_pairs.has_unsettled()) << "for the next time";
}

// The kernel gives the number of a queue pair that is gone to the next one.
TEST_F(SiwState, WhatIsLeftOfOneThatIsGoneIsNobodys) {
  fake_.connect();
  ASSERT_EQ(receive(1), 0);
  ASSERT_TRUE(fake_.complete(77, SIW_OP_RECEIVE, SIW_WC_WR_FLUSH_ERR));
  ASSERT_TRUE(fake_.complete(78, SIW_OP_SEND, SIW_WC_SUCCESS, 0x51));
  ASSERT_EQ(verbs_provider_siw.destroy_qp(*fake_.qp), 0);
  fake_.qp = nullptr;
  ASSERT_EQ(fake_.make_qp(), 0);
  fake_.connect();
  ASSERT_EQ(fake_.poll(), 1);
  EXPECT_EQ(fake_.wc[0].wr_id, 78u) << "another's stays";
  EXPECT_EQ(asked(), IBV_QPS_RTS);
}

TEST_F(SiwState, AnotherQueuePairsErrorIsNotOurs) {
  fake_.connect();
  ASSERT_TRUE(fake_.complete(77, SIW_OP_SEND, SIW_WC_WR_FLUSH_ERR, 0x51));
  ASSERT_EQ(fake_.poll(), 1);
  ASSERT_EQ(send(3), 0);
  EXPECT_EQ(asked(), IBV_QPS_RTS);
}

TEST_F(SiwState, ADoorbellThatFindsNoConnectionAnyMoreFlushesWhatWasPosted) {
  fake_.connect();
  fake_.system.bell = ENOTCONN;
  EXPECT_EQ(send(5), 0);
  expect_flushed({5});
}

TEST_F(SiwState, LeadingToErrorFlushesAndThereIsNoWayBack) {
  fake_.connect();
  ASSERT_EQ(receive(1), 0);
  ASSERT_EQ(lead_to(IBV_QPS_ERR), 0);
  expect_flushed({1});
  tell_each_refusal(true);
  testing::internal::CaptureStderr();
  EXPECT_EQ(lead_to(IBV_QPS_RESET), EINVAL);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("destroy it"), std::string::npos);
  EXPECT_EQ(lead_to(IBV_QPS_ERR), 0);
  ASSERT_EQ(send(2), 0);
  expect_flushed({2});
}

TEST_F(SiwState, AConnectionIsNotForgottenByAMoveBack) {
  fake_.connect();
  EXPECT_EQ(lead_to(IBV_QPS_RESET), EINVAL);
  EXPECT_EQ(asked(), IBV_QPS_RTS);
}

TEST_F(SiwState, TheKernelsOwnCompletionsComeFirst) {
  fake_.connect();
  ASSERT_EQ(lead_to(IBV_QPS_ERR), 0);
  ASSERT_EQ(receive(2), 0);
  ASSERT_TRUE(fake_.complete(1, SIW_OP_RECEIVE, SIW_WC_WR_FLUSH_ERR));
  expect_flushed({1, 2});
}

TEST_F(SiwState, NoMoreWaitToBePolledThanTheQueueHolds) {
  ASSERT_EQ(lead_to(IBV_QPS_ERR), 0);
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(send(i), 0);
  EXPECT_EQ(send(8), ENOMEM);
  ASSERT_EQ(fake_.poll(1), 1);
  EXPECT_EQ(receive(9), 0);
  expect_flushed({1, 2, 3, 4, 5, 6, 7, 9});
}

TEST_F(SiwState, WrongRequestsAreWrongInErrorToo) {
  ASSERT_EQ(lead_to(IBV_QPS_ERR), 0);
  Request request(IBV_WR_SEND_WITH_IMM);
  const Posted posted = post(fake_, request.wr);
  EXPECT_EQ(posted.error, EINVAL);
  EXPECT_EQ(posted.bad, &request.wr);
  EXPECT_EQ(fake_.poll(), 0);
}

// Under ThreadSanitizer this is the proof of the order: every byte of an element is written before
// it is seen, and read before it is written again.
TEST_F(SiwState, RequestsArriveWholeAndInOrder) {
  constexpr std::uint64_t kRequests = 20000;
  fake_.connect();
  // Through the queue's own mapping: ThreadSanitizer knows memory by its address.
  siw_sqe* const ring = fake_.qp->send_ring.vacant();
  std::uint64_t wrong = 0;
  std::thread kernel([&] {
    for (std::uint64_t next = 0; next < kRequests;) {
      siw_sqe& element = ring[next % 8];
      const std::atomic_ref flags(element.flags);
      if (flags.load(std::memory_order_acquire) == 0) {
        std::this_thread::yield();
        continue;
      }
      wrong += element.id != next || element.num_sge != 1 || element.sge[0].length != 16;
      flags.store(0, std::memory_order_release);
      ++next;
    }
  });
  for (std::uint64_t i = 0; i < kRequests;) {
    const int error = send(i);
    ASSERT_TRUE(error == 0 || error == ENOMEM) << error;
    if (error == 0)
      ++i;
    else
      std::this_thread::yield();
  }
  kernel.join();
  EXPECT_EQ(wrong, 0u);
}

// Two threads that post, one that polls an error: who sees it first settles, once.
TEST_F(SiwState, WhoeverSeesTheEndFirstFlushesOnce) {
  fake_.connect();
  ASSERT_EQ(receive(1), 0);
  ASSERT_TRUE(fake_.complete(77, SIW_OP_SEND, SIW_WC_LOC_QP_OP_ERR));
  std::thread sender([&] {
    for (std::uint64_t i = 10; i < 12; ++i) EXPECT_EQ(send(i), 0);
  });
  std::thread receiver([&] { EXPECT_EQ(receive(20), 0); });
  ASSERT_EQ(fake_.poll(1), 1);
  sender.join();
  receiver.join();
  ASSERT_EQ(lead_to(IBV_QPS_ERR), 0);
  int flushed = 0;
  for (int found = 0; (found = fake_.poll()) != 0;) flushed += found;
  EXPECT_EQ(flushed, 4);
}

}  // namespace
}  // namespace verbatim::siw_test
