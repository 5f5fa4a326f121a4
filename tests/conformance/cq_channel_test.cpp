// SPDX-License-Identifier: BSD-2-Clause
//
// Completion channels (IBTA 11.4.2.2, 11.6.2; man ibv_create_comp_channel, ibv_req_notify_cq,
// ibv_get_cq_event, ibv_ack_cq_events). Completions come from a queue pair in the error state,
// which flushes what it is given: no peer is needed.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <thread>

#include "tests/support/device.hpp"
#include "tests/support/quirks.hpp"
#include "tests/support/scale.hpp"

namespace verbatim::harness {
namespace {

class CqChannel : public OnDevice {
 protected:
  void SetUp() override {
    told_ = channel();
    ASSERT_NE(told_, nullptr);
    queue_ = cq(64, told_, this);
    by_ = flusher(queue_);
  }
  ibv_qp* flusher(ibv_cq* into) {
    ibv_qp* const made = qp(IBV_QPT_RC, into);
    EXPECT_EQ(lead(made, IBV_QPS_ERR), 0);
    return made;
  }
  void complete_one(ibv_qp* by = nullptr) {
    ASSERT_EQ(post_receive(by == nullptr ? by_ : by, 1, nullptr, 0, 0), 0);
  }
  bool readable(int wait_ms = 0) {
    pollfd wait{told_->fd, POLLIN, 0};
    return ::poll(&wait, 1, wait_ms) == 1;
  }
  /// The queue that the next event names.
  ibv_cq* take() {
    ibv_cq* named = nullptr;
    if (!readable(kDefaultWaitMs)) {
      ADD_FAILURE() << "no event came";
      return named;
    }
    void* cookie = nullptr;
    EXPECT_EQ(ibv_get_cq_event(told_, &named, &cookie), 0);
    if (named != nullptr) {
      EXPECT_EQ(cookie, named->cq_context);
    }
    return named;
  }
  void make_nonblocking() {
    ASSERT_EQ(fcntl(told_->fd, F_SETFL, fcntl(told_->fd, F_GETFL) | O_NONBLOCK), 0);
  }
  void expect_no_event() {
    make_nonblocking();
    ibv_cq* named = nullptr;
    void* cookie = nullptr;
    EXPECT_EQ(ibv_get_cq_event(told_, &named, &cookie), -1);
    EXPECT_EQ(errno, EAGAIN);
  }

  ibv_comp_channel* told_ = nullptr;
  ibv_cq* queue_ = nullptr;
  ibv_qp* by_ = nullptr;
};
RUN_ON_EVERY_DEVICE(CqChannel);

TEST_P(CqChannel, HasADescriptorAndItsContext) {
  EXPECT_GE(told_->fd, 0);
  EXPECT_EQ(told_->context, context());
  EXPECT_NE(fcntl(told_->fd, F_GETFD) & FD_CLOEXEC, 0);
}

TEST_P(CqChannel, TellsWhichQueueAndGivesItsPointer) {
  ASSERT_EQ(ibv_req_notify_cq(queue_, 0), 0);
  complete_one();
  EXPECT_EQ(take(), queue_);
  ibv_ack_cq_events(queue_, 1);
}

TEST_P(CqChannel, TellsOnceForEachArming) {
  ASSERT_EQ(ibv_req_notify_cq(queue_, 0), 0);
  complete_one();
  complete_one();
  EXPECT_EQ(take(), queue_);
  complete_one();
  expect_no_event();
  ibv_ack_cq_events(queue_, 1);
}

TEST_P(CqChannel, ArmedTwiceTellsOnce) {
  ASSERT_EQ(ibv_req_notify_cq(queue_, 0), 0);
  ASSERT_EQ(ibv_req_notify_cq(queue_, 0), 0);
  complete_one();
  EXPECT_EQ(take(), queue_);
  expect_no_event();
  ibv_ack_cq_events(queue_, 1);
}

TEST_P(CqChannel, OfAnUnarmedQueueIsSilent) {
  complete_one();
  EXPECT_FALSE(readable());
  expect_no_event();
}

TEST_P(CqChannel, SaysNothingOfWhatCameBeforeTheArming) {
  // man ibv_req_notify_cq: that is why one polls once more after arming. A device may tell anyway.
  complete_one();
  ASSERT_EQ(ibv_req_notify_cq(queue_, 0), 0);
  const bool told = readable();
  if (told) {
    EXPECT_EQ(take(), queue_);
    ibv_ack_cq_events(queue_, 1);
  }
  ASSERT_EQ(ibv_req_notify_cq(queue_, 0), 0);
  complete_one();
  EXPECT_EQ(take(), queue_);
  ibv_ack_cq_events(queue_, 1);
}

TEST_P(CqChannel, ArmedWhileACompletionLiesUnpolledTellsAtOnce) {
  // mlx4's and mlx5's doorbell carries how far the program has polled; programs that poll one
  // completion for each event were only ever run there. IBTA 11.4.2.2 forbids no early event.
  SKIP_IF(quirk_of(attr().vendor_id, kArmedTellsOfLaterOnesOnly));
  ASSERT_EQ(ibv_req_notify_cq(queue_, 0), 0);
  complete_one();
  complete_one();
  for (int left = 2; left != 0; --left) {
    SCOPED_TRACE(left);
    EXPECT_EQ(take(), queue_);
    ibv_ack_cq_events(queue_, 1);
    ASSERT_EQ(ibv_req_notify_cq(queue_, 0), 0);
    EXPECT_EQ(poll(queue_, 1).size(), 1u);
  }
  // Each was told of.
  expect_no_event();
}

TEST_P(CqChannel, ArmedBeforeWhatItToldOfIsPolledTellsOfTheNext) {
  // perftest's -e: an event, the arming, then one completion, and what it waits for next is the
  // other side's answer. A second event for what came would send it on without one.
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(i);
    ASSERT_EQ(ibv_req_notify_cq(queue_, 0), 0);
    complete_one();
    EXPECT_EQ(take(), queue_);
    ibv_ack_cq_events(queue_, 1);
    ASSERT_EQ(ibv_req_notify_cq(queue_, 0), 0);
    EXPECT_EQ(poll(queue_, 1).size(), 1u);
    expect_no_event();
  }
}

TEST_P(CqChannel, ArmedForAllAfterSolicitedTellsOfAll) {
  // IBTA 11.4.2.2: a request for the next completion outweighs one for the next solicited one.
  ASSERT_EQ(ibv_req_notify_cq(queue_, 1), 0);
  ASSERT_EQ(ibv_req_notify_cq(queue_, 0), 0);
  complete_one();
  EXPECT_EQ(take(), queue_);
  ibv_ack_cq_events(queue_, 1);
}

TEST_P(CqChannel, ArmedForSolicitedTellsOfAnError) {
  // man ibv_req_notify_cq: an unsuccessful completion counts as solicited.
  SKIP_IF(quirk_of(attr().vendor_id, kFlushedIsNotSolicited));
  ASSERT_EQ(ibv_req_notify_cq(queue_, 1), 0);
  complete_one();
  EXPECT_EQ(take(), queue_);
  ibv_ack_cq_events(queue_, 1);
}

TEST_P(CqChannel, OfManyQueuesNamesEachOfThem) {
  std::vector<ibv_cq*> queues;
  for (int i = 0; i < 8; ++i) {
    queues.push_back(cq(8, told_));
    ASSERT_EQ(ibv_req_notify_cq(queues.back(), 0), 0);
  }
  for (ibv_cq* each : queues) complete_one(flusher(each));
  std::vector<ibv_cq*> named;
  for (int i = 0; i < 8; ++i) {
    named.push_back(take());
    ibv_ack_cq_events(named.back(), 1);
  }
  std::sort(queues.begin(), queues.end());
  std::sort(named.begin(), named.end());
  EXPECT_EQ(named, queues);
}

TEST_P(CqChannel, GoodForEpoll) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event watched{};
  watched.events = EPOLLIN;
  ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, told_->fd, &watched), 0);
  epoll_event happened{};
  EXPECT_EQ(epoll_wait(epoll, &happened, 1, 0), 0);
  ASSERT_EQ(ibv_req_notify_cq(queue_, 0), 0);
  complete_one();
  EXPECT_EQ(epoll_wait(epoll, &happened, 1, kDefaultWaitMs), 1);
  EXPECT_EQ(take(), queue_);
  EXPECT_EQ(epoll_wait(epoll, &happened, 1, 0), 0);
  ibv_ack_cq_events(queue_, 1);
  close(epoll);
}

TEST_P(CqChannel, WakesWhoSleepsInIt) {
  ASSERT_EQ(ibv_req_notify_cq(queue_, 0), 0);
  std::atomic<bool> woken{false};
  std::thread sleeper([&] {
    ibv_cq* named = nullptr;
    void* cookie = nullptr;
    EXPECT_EQ(ibv_get_cq_event(told_, &named, &cookie), 0);
    EXPECT_EQ(named, queue_);
    woken = true;
  });
  EXPECT_FALSE(woken);
  complete_one();
  sleeper.join();
  ibv_ack_cq_events(queue_, 1);
}

TEST_P(CqChannel, EventsOfOneQueueAreAcknowledgedTogether) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(ibv_req_notify_cq(queue_, 0), 0);
    complete_one();
    EXPECT_EQ(take(), queue_);
    poll(queue_, 1);
  }
  ibv_ack_cq_events(queue_, 5);
}

TEST_P(CqChannel, AQueueIsNotDestroyedUntilItsEventsAreAcknowledged) {
  // man ibv_ack_cq_events, ibv_destroy_cq: it waits.
  ibv_cq* const doomed = ibv_create_cq(context(), 8, nullptr, told_, 0);
  ASSERT_NE(doomed, nullptr);
  ibv_qp* const by = flusher(doomed);
  ASSERT_EQ(ibv_req_notify_cq(doomed, 0), 0);
  complete_one(by);
  EXPECT_EQ(take(), doomed);
  ASSERT_EQ(destroy(by), 0);
  std::atomic<int> step{0};
  std::thread destroyer([&] {
    step = 1;
    EXPECT_EQ(ibv_destroy_cq(doomed), 0);
    step = 2;
  });
  ASSERT_TRUE(wait_until([&] { return step == 1; }));
  for (int i = 0; i < 50; ++i) sched_yield();
  EXPECT_EQ(step, 1) << "it did not wait";
  ibv_ack_cq_events(doomed, 1);
  destroyer.join();
  EXPECT_EQ(step, 2);
}

TEST_P(CqChannel, ForgetsTheUntakenEventsOfADestroyedQueue) {
  ibv_cq* const doomed = ibv_create_cq(context(), 8, nullptr, told_, 0);
  ibv_qp* const by = flusher(doomed);
  ASSERT_EQ(ibv_req_notify_cq(doomed, 0), 0);
  complete_one(by);
  ASSERT_TRUE(readable(kDefaultWaitMs));
  ASSERT_EQ(destroy(by), 0);
  ASSERT_EQ(ibv_destroy_cq(doomed), 0);
  expect_no_event();
}

TEST_P(CqChannel, IsNotDestroyedBeforeItsQueues) {
  expect_complaints();
  EXPECT_EQ(ibv_destroy_comp_channel(told_), EBUSY);
}

TEST_P(CqChannel, LosesNoWakeupInTenThousandRounds) {
  std::atomic<unsigned> asked{0};
  const unsigned rounds = scaled_rounds(10'000u, 500u);
  std::thread completer([&] {
    for (unsigned round = 1; round <= rounds; ++round) {
      if (!wait_until([&] { return asked >= round; })) return;
      complete_one();
    }
  });
  int lost = 0;
  for (unsigned round = 1; round <= rounds && lost == 0; ++round) {
    ASSERT_EQ(ibv_req_notify_cq(queue_, 0), 0);
    asked = round;
    if (!readable(kDefaultWaitMs)) {
      ++lost;
      asked = rounds;
      break;
    }
    take();
    ibv_ack_cq_events(queue_, 1);
    poll(queue_, 1);
  }
  completer.join();
  EXPECT_EQ(lost, 0);
}

}  // namespace
}  // namespace verbatim::harness
