// SPDX-License-Identifier: BSD-2-Clause
// Completion channels and asynchronous events: one event per announcement, a pollable descriptor,
// and no object that goes while an event of it is in the application's hands.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "tests/support/fake_kernel.hpp"
#include "tests/support/null_provider.hpp"
#include "tests/unit/opened_device.hpp"

namespace verbatim::unit {
namespace {

bool is_readable(int fd) {
  pollfd poller{fd, POLLIN, 0};
  return ::poll(&poller, 1, 0) == 1;
}

void make_nonblocking(int fd) {
  ASSERT_EQ(::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

/// Either witness: events are announced in the one by its software queue, in the other by its
/// kernel.
class Events : public EachWitness {
 protected:
  void SetUp() override {
    EachWitness::SetUp();
    channel = ibv_create_comp_channel(context);
    ASSERT_NE(channel, nullptr);
    cq = make_cq(channel, this);
  }
  void TearDown() override {
    if (cq != nullptr) {
      EXPECT_EQ(ibv_destroy_cq(cq), 0);
    }
    EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
    EachWitness::TearDown();
  }
  bool in_software() const { return std::string(GetParam()) == "null0"; }
  void notify(ibv_cq* which) {
    if (in_software()) {
      null::notify(which);
    } else {
      fake::Kernel::instance().complete(reinterpret_cast<std::uintptr_t>(which));
    }
  }
  void raise_cq(ibv_cq* which) {
    if (in_software()) {
      ibv_async_event event{};
      event.element.cq = which;
      event.event_type = IBV_EVENT_CQ_ERR;
      null::raise(context, event);
    } else {
      fake::Kernel::instance().raise(reinterpret_cast<std::uintptr_t>(which), IBV_EVENT_CQ_ERR);
    }
  }
  void raise_qp(ibv_qp* which, ibv_event_type type) {
    if (in_software()) {
      ibv_async_event event{};
      event.element.qp = which;
      event.event_type = type;
      null::raise(context, event);
    } else {
      fake::Kernel::instance().raise(reinterpret_cast<std::uintptr_t>(which), type);
    }
  }
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Witness, Events, ::testing::Values("null0", "fakek0"), witness_name);

TEST_P(Events, ACompletionIsFetchedOncePerAnnouncement) {
  EXPECT_FALSE(is_readable(channel->fd));
  notify(cq);
  notify(cq);
  EXPECT_TRUE(is_readable(channel->fd));
  for (int i = 0; i < 2; ++i) {
    ibv_cq* got = nullptr;
    void* user = nullptr;
    ASSERT_EQ(ibv_get_cq_event(channel, &got, &user), 0);
    EXPECT_EQ(got, cq);
    EXPECT_EQ(user, this);
  }
  EXPECT_FALSE(is_readable(channel->fd));
  ibv_ack_cq_events(cq, 2);
  EXPECT_EQ(cq->comp_events_completed, 2u);
}

TEST_P(Events, AnEmptyChannelSaysSoWhenItMayNotBlock) {
  make_nonblocking(channel->fd);
  ibv_cq* got = nullptr;
  void* user = nullptr;
  errno = 0;
  EXPECT_EQ(ibv_get_cq_event(channel, &got, &user), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(got, nullptr) << "outputs are written on success only";
  make_nonblocking(context->async_fd);
  ibv_async_event event;
  EXPECT_EQ(ibv_get_async_event(context, &event), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_P(Events, AReaderThatWaitsIsWoken) {
  ibv_cq* got = nullptr;
  std::thread reader([&] {
    void* user = nullptr;
    EXPECT_EQ(ibv_get_cq_event(channel, &got, &user), 0);
  });
  notify(cq);
  reader.join();
  EXPECT_EQ(got, cq);
  ibv_ack_cq_events(cq, 1);
}

TEST_P(Events, AWaitingReaderIsInterruptedLikeARead) {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGUSR2, &action, nullptr), 0);
  std::atomic<int> answer{0};
  std::thread reader([&] {
    ibv_cq* got = nullptr;
    void* user = nullptr;
    answer.store(ibv_get_cq_event(channel, &got, &user) == -1 ? errno : -1);
  });
  while (answer.load() == 0) {
    ::pthread_kill(reader.native_handle(), SIGUSR2);
    std::this_thread::yield();
  }
  reader.join();
  EXPECT_EQ(answer.load(), EINTR);
}

TEST_P(Events, DestroyWaitsForTheAcknowledgement) {
  notify(cq);
  ibv_cq* got = nullptr;
  void* user = nullptr;
  ASSERT_EQ(ibv_get_cq_event(channel, &got, &user), 0);
  std::atomic<bool> acknowledged{false};
  std::thread acknowledger([&, held = cq] {
    // Long enough for a destroy that does not wait to be seen; nothing depends on its length.
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    acknowledged.store(true);
    ibv_ack_cq_events(held, 1);
  });
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_TRUE(acknowledged.load());
  cq = nullptr;
  acknowledger.join();
}

TEST_P(Events, UnfetchedEventsOfADestroyedCqAreDropped) {
  ibv_cq* const other = make_cq(channel);
  notify(cq);
  notify(other);
  notify(cq);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  cq = nullptr;
  ibv_cq* got = nullptr;
  void* user = nullptr;
  ASSERT_EQ(ibv_get_cq_event(channel, &got, &user), 0);
  EXPECT_EQ(got, other);
  EXPECT_FALSE(is_readable(channel->fd));
  ibv_ack_cq_events(other, 1);
  EXPECT_EQ(ibv_destroy_cq(other), 0);
}

TEST_P(Events, AsyncEventsNameTheirObject) {
  ibv_qp* const qp = make_qp(cq);
  EXPECT_FALSE(is_readable(context->async_fd));
  raise_qp(qp, IBV_EVENT_COMM_EST);
  raise_cq(cq);
  raise_qp(qp, IBV_EVENT_QP_FATAL);
  EXPECT_TRUE(is_readable(context->async_fd));
  std::vector<ibv_async_event> events(3);
  for (ibv_async_event& event : events) {
    ASSERT_EQ(ibv_get_async_event(context, &event), 0);
    if (event.event_type == IBV_EVENT_CQ_ERR) {
      EXPECT_EQ(event.element.cq, cq);
    } else {
      EXPECT_EQ(event.element.qp, qp);
    }
  }
  EXPECT_EQ(events[0].event_type, IBV_EVENT_COMM_EST);
  EXPECT_FALSE(is_readable(context->async_fd));
  for (ibv_async_event& event : events) ibv_ack_async_event(&event);
  EXPECT_EQ(qp->events_completed, 2u);
  EXPECT_EQ(cq->async_events_completed, 1u);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST_P(Events, DestroyOfAQpWaitsForTheAcknowledgement) {
  ibv_qp* const qp = make_qp(cq);
  raise_qp(qp, IBV_EVENT_QP_FATAL);
  ibv_async_event event;
  ASSERT_EQ(ibv_get_async_event(context, &event), 0);
  std::atomic<bool> acknowledged{false};
  std::thread acknowledger([&] {
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    acknowledged.store(true);
    ibv_ack_async_event(&event);
  });
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_TRUE(acknowledged.load());
  acknowledger.join();
}

TEST_P(Events, UnfetchedEventsOfADestroyedQpAreDropped) {
  ibv_qp* const qp = make_qp(cq);
  raise_qp(qp, IBV_EVENT_QP_FATAL);
  raise_qp(qp, IBV_EVENT_COMM_EST);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_FALSE(is_readable(context->async_fd));
}

class SoftEvents : public OpenedDevice {};

// Programs end their event threads so; a wait that is no cancellation point would hang their join.
TEST_F(SoftEvents, AWaitingReaderCanBeCancelled) {
#ifdef VBT_UNDER_SANITIZER
  GTEST_SKIP() << "sanitizers do not follow the stack of a cancelled thread";
#endif
  ibv_comp_channel* const channel = ibv_create_comp_channel(context);
  ibv_cq* const cq = make_cq(channel);
  const auto body = [](void* argument) -> void* {
    ibv_cq* got = nullptr;
    void* user = nullptr;
    ibv_get_cq_event(static_cast<ibv_comp_channel*>(argument), &got, &user);
    return nullptr;
  };
  pthread_t reader;
  ASSERT_EQ(::pthread_create(&reader, nullptr, body, channel), 0);
  EXPECT_EQ(::pthread_cancel(reader), 0);
  void* result = nullptr;
  ASSERT_EQ(::pthread_join(reader, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);

  null::notify(cq);
  ibv_cq* got = nullptr;
  void* user = nullptr;
  EXPECT_EQ(ibv_get_cq_event(channel, &got, &user), 0) << "the channel goes on";
  ibv_ack_cq_events(cq, 1);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

// Between two waits too: where it has an event to take, or to be told of, it holds locks.
TEST_F(SoftEvents, AReaderThatIsCancelledKeepsNoLock) {
#ifdef VBT_UNDER_SANITIZER
  GTEST_SKIP() << "sanitizers do not follow the stack of a cancelled thread";
#endif
  ibv_comp_channel* const channel = ibv_create_comp_channel(context);
  ibv_cq* const cq = make_cq(channel);
  null::notify(cq);
  ibv_async_event event{};
  event.element.cq = cq;
  event.event_type = IBV_EVENT_CQ_ERR;
  null::raise(context, event);
  const auto completions = [](void* argument) -> void* {
    ::pthread_cancel(::pthread_self());
    ibv_cq* got = nullptr;
    void* user = nullptr;
    ibv_get_cq_event(static_cast<ibv_comp_channel*>(argument), &got, &user);
    return nullptr;
  };
  const auto others = [](void* argument) -> void* {
    ::pthread_cancel(::pthread_self());
    ibv_async_event got;
    ibv_get_async_event(static_cast<ibv_context*>(argument), &got);
    return nullptr;
  };
  pthread_t readers[2];
  ASSERT_EQ(::pthread_create(&readers[0], nullptr, completions, channel), 0);
  ASSERT_EQ(::pthread_create(&readers[1], nullptr, others, context), 0);
  for (const pthread_t reader : readers) {
    void* result = nullptr;
    ASSERT_EQ(::pthread_join(reader, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED);
  }
  ibv_cq* got = nullptr;
  void* user = nullptr;
  EXPECT_EQ(ibv_get_cq_event(channel, &got, &user), 0);
  ibv_ack_cq_events(cq, 1);
  EXPECT_EQ(ibv_get_async_event(context, &event), 0);
  ibv_ack_async_event(&event);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

TEST_F(SoftEvents, OnlyPortsAndTheDeviceNeedNoAcknowledgement) {
  ibv_async_event port{};
  port.element.port_num = 3;
  port.event_type = IBV_EVENT_PORT_ERR;
  ibv_async_event device{};
  device.event_type = IBV_EVENT_DEVICE_FATAL;
  null::raise(context, port);
  null::raise(context, device);
  ibv_async_event got;
  ASSERT_EQ(ibv_get_async_event(context, &got), 0);
  EXPECT_EQ(got.event_type, IBV_EVENT_PORT_ERR);
  EXPECT_EQ(got.element.port_num, 3);
  ibv_ack_async_event(&got);
  ASSERT_EQ(ibv_get_async_event(context, &got), 0);
  EXPECT_EQ(got.event_type, IBV_EVENT_DEVICE_FATAL);
}

TEST_F(SoftEvents, AnEventThatWaitsAlreadyIsNotQueuedTwice) {
  ibv_cq* const cq = make_cq();
  ibv_async_event event{};
  event.element.cq = cq;
  event.event_type = IBV_EVENT_CQ_ERR;
  for (int i = 0; i < 1000; ++i) null::raise(context, event);
  ibv_async_event got;
  ASSERT_EQ(ibv_get_async_event(context, &got), 0);
  EXPECT_FALSE(is_readable(context->async_fd));
  null::raise(context, event);
  ASSERT_EQ(ibv_get_async_event(context, &got), 0) << "once fetched it may be raised again";
  ibv_ack_async_event(&got);
  ibv_ack_async_event(&got);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(SoftEvents, OfAPortTheLastWordComesLast) {
  ibv_async_event port{};
  port.element.port_num = 2;
  for (const ibv_event_type type :
       {IBV_EVENT_PORT_ERR, IBV_EVENT_LID_CHANGE, IBV_EVENT_PORT_ACTIVE, IBV_EVENT_PORT_ERR}) {
    port.event_type = type;
    null::raise(context, port);
  }
  for (const ibv_event_type type :
       {IBV_EVENT_LID_CHANGE, IBV_EVENT_PORT_ACTIVE, IBV_EVENT_PORT_ERR}) {
    ibv_async_event got;
    ASSERT_EQ(ibv_get_async_event(context, &got), 0);
    EXPECT_EQ(got.event_type, type);
    EXPECT_EQ(got.element.port_num, 2);
  }
  EXPECT_FALSE(is_readable(context->async_fd));
}

TEST_F(SoftEvents, AllEventsOfAQpFitInTheirOrder) {
  constexpr ibv_event_type kAll[] = {IBV_EVENT_QP_LAST_WQE_REACHED,
                                     IBV_EVENT_QP_FATAL,
                                     IBV_EVENT_QP_REQ_ERR,
                                     IBV_EVENT_QP_ACCESS_ERR,
                                     IBV_EVENT_COMM_EST,
                                     IBV_EVENT_SQ_DRAINED,
                                     IBV_EVENT_PATH_MIG,
                                     IBV_EVENT_PATH_MIG_ERR};
  ibv_cq* const cq = make_cq();
  ibv_qp* const qp = make_qp(cq);
  ibv_async_event event{};
  event.element.qp = qp;
  for (const ibv_event_type type : kAll) {
    event.event_type = type;
    null::raise(context, event);
  }
  for (const ibv_event_type type : kAll) {
    ASSERT_EQ(ibv_get_async_event(context, &event), 0);
    EXPECT_EQ(event.event_type, type);
    EXPECT_EQ(event.element.qp, qp);
    ibv_ack_async_event(&event);
  }
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
}

TEST_F(SoftEvents, AnSrqHasEventsToo) {
  ibv_srq_init_attr init{};
  init.attr = {8, 1, 0};
  ibv_srq* const srq = ibv_create_srq(pd, &init);
  ASSERT_NE(srq, nullptr);
  ibv_async_event event{};
  event.element.srq = srq;
  event.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
  null::raise(context, event);
  ibv_async_event got;
  ASSERT_EQ(ibv_get_async_event(context, &got), 0);
  EXPECT_EQ(got.element.srq, srq);
  ibv_ack_async_event(&got);
  EXPECT_EQ(srq->events_completed, 1u);
  null::raise(context, event);
  EXPECT_EQ(ibv_destroy_srq(srq), 0);
  EXPECT_FALSE(is_readable(context->async_fd));
}

// Announced from several threads, fetched by several: none is lost, none is made up.
TEST_F(SoftEvents, ChannelsCountUnderContention) {
  constexpr int kCqs = 3;
  constexpr int kEach = 2000;
  ibv_comp_channel* const channel = ibv_create_comp_channel(context);
  std::vector<ibv_cq*> cqs;
  std::vector<std::atomic<int>> fetched(kCqs);
  for (int i = 0; i < kCqs; ++i)
    cqs.push_back(make_cq(channel, &fetched[static_cast<unsigned>(i)]));
  std::atomic<int> left{kCqs * kEach};
  std::vector<std::thread> threads;
  for (ibv_cq* cq : cqs) {
    threads.emplace_back([cq] {
      for (int i = 0; i < kEach; ++i) null::notify(cq);
    });
  }
  for (int reader = 0; reader < 2; ++reader) {
    threads.emplace_back([&] {
      while (left.fetch_sub(1) > 0) {
        ibv_cq* cq = nullptr;
        void* user = nullptr;
        ASSERT_EQ(ibv_get_cq_event(channel, &cq, &user), 0);
        static_cast<std::atomic<int>*>(user)->fetch_add(1);
        ibv_ack_cq_events(cq, 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::atomic<int>& count : fetched) EXPECT_EQ(count.load(), kEach);
  EXPECT_FALSE(is_readable(channel->fd));
  for (ibv_cq* cq : cqs) EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

}  // namespace
}  // namespace verbatim::unit
