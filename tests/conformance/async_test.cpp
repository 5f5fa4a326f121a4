// SPDX-License-Identifier: BSD-2-Clause
//
// Asynchronous events (IBTA 11.6.3; man ibv_get_async_event): which object, once each, blocking or
// not, and what waits for their acknowledgement.
#include <fcntl.h>
#include <poll.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <string_view>
#include <thread>

#include "tests/support/quirks.hpp"
#include "tests/support/two_sides.hpp"

namespace verbatim::harness {
namespace {

class Async : public BetweenTwo {};
RUN_OVER_SETTINGS(Async, on_every_device(each_way_and_two_contexts()));

void expect_none(Side& side) { EXPECT_EQ(side.take_async_event(0).type, -1); }

TEST_P(Async, AnAccessFaultNamesTheRespondersQueuePair) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(memory(), 64);
  RegionInfo wrong = pair.b.allocate(memory(), 64);
  wrong.rkey ^= 0x80000000u;
  expect_posted(pair.a.post_send(pair.qa, write(1, slice(local, 0, 8), wrong)));
  expect_error(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_REM_ACCESS_ERR, pair.qa);
  SKIP_IF(quirk_of(pair.qb.vendor, kNoEventsOfResponders));
  const AsyncEvent event = pair.b.take_async_event();
  EXPECT_EQ(event.type, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_EQ(event.qp, pair.qb.id);
  expect_none(pair.b);
}

TEST_P(Async, AnInvalidRequestNamesTheRespondersQueuePair) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(memory(), 64);
  const RegionInfo remote = pair.b.allocate(memory(), 64);
  expect_posted(pair.a.post_send(pair.qa, fetch_add(1, slice(local, 0, 8), remote, 4, 1)));
  expect_error(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_REM_INV_REQ_ERR, pair.qa);
  SKIP_IF(quirk_of(pair.qb.vendor, kNoEventsOfResponders));
  const AsyncEvent event = pair.b.take_async_event();
  EXPECT_EQ(event.type, IBV_EVENT_QP_REQ_ERR);
  EXPECT_EQ(event.qp, pair.qb.id);
}

/// IBTA 11.6.3.2 COMM_EST: "the first packet arrived on a QP in RTR"; a kernel's device may leave
/// it out, shm raises it. The message itself is there.
class FirstMessage : public BetweenTwo {
 protected:
  /// `receiver` at b is in RTR when `sender`, at a, is connected to it.
  void connect(const QpInfo& sender, const QpInfo& receiver) {
    Pair& pair = *pair_;
    ASSERT_EQ(pair.b.call<&Endpoint::to_init>(receiver.id, Link{}), 0);
    ASSERT_EQ(pair.b.call<&Endpoint::to_rtr>(receiver.id, sender, Link{}), 0);
    pair.a.connect(sender, receiver);
  }
  void start(ibv_qp_type type) {
    PairWish wish;
    wish.connected = false;
    wish.a.type = wish.b.type = type;
    start(wish);
    connect(pair_->qa, pair_->qb);
  }
  void start(const PairWish& wish) {
    pair_ = std::make_unique<Pair>(GetParam(), wish);
    from_ = pair_->a.allocate(memory(), 64);
    to_ = pair_->b.allocate(memory(), 64);
    pair_->a.fill(from_, 0, 64, 3);
  }
  void expect_told(const QpInfo& receiver) {
    const bool tells = std::string_view(device()).starts_with("shm");
    const AsyncEvent event = pair_->b.take_async_event(tells ? kDefaultWaitMs : 0);
    if (event.type == -1 && !tells) GTEST_SKIP() << "the device does not raise IBV_EVENT_COMM_EST";
    EXPECT_EQ(event.type, IBV_EVENT_COMM_EST);
    EXPECT_EQ(event.qp, receiver.id);
    ASSERT_EQ(pair_->b.call<&Endpoint::to_rts>(receiver.id, Link{}), 0);
    expect_none(pair_->b);
  }
  void expect_told_of_a_send(ibv_qp_type type) {
    start(type);
    Pair& pair = *pair_;
    expect_posted(pair.b.post_receive(pair.qb, receive(1, slice(to_, 0, 64))));
    expect_posted(pair.a.post_send(pair.qa, send(2, slice(from_, 0, 8))));
    expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 1, 8, pair.qb);
    expect_told(pair.qb);
  }
  void expect_told_of_a_write(ibv_qp_type type) {
    start(type);
    Pair& pair = *pair_;
    expect_posted(pair.a.post_send(pair.qa, write(2, slice(from_, 0, 8), to_)));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_RDMA_WRITE, pair.qa);
    EXPECT_TRUE(wait_until([&] { return pair.b.mismatch(to_, 0, 8, 3) == -1; }));
    expect_told(pair.qb);
  }

  std::unique_ptr<Pair> pair_;
  RegionInfo from_, to_;
};
RUN_OVER_SETTINGS(FirstMessage, on_every_device(each_way()));

TEST_P(FirstMessage, InRtrTellsThatTheConnectionStands) { expect_told_of_a_send(IBV_QPT_RC); }

TEST_P(FirstMessage, InRtrTellsThatTheUnreliableConnectionStands) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UC));
  expect_told_of_a_send(IBV_QPT_UC);
}

TEST_P(FirstMessage, InRtrTellsSoWhenItIsAWrite) { expect_told_of_a_write(IBV_QPT_RC); }

TEST_P(FirstMessage, InRtrTellsSoWhenItIsAWriteThatNobodyAnswers) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UC));
  expect_told_of_a_write(IBV_QPT_UC);
}

TEST_P(FirstMessage, InRtrTellsSoWhenItIsARead) {
  start(IBV_QPT_RC);
  Pair& pair = *pair_;
  pair.b.fill(to_, 0, 64, 9);
  expect_posted(pair.a.post_send(pair.qa, read(2, slice(from_, 0, 8), to_)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_RDMA_READ, pair.qa);
  EXPECT_EQ(pair.a.mismatch(from_, 0, 8, 9), -1);
  expect_told(pair.qb);
}

TEST_P(FirstMessage, InRtrTellsTheTargetOfAnExtendedConnection) {
  // IBTA annex A14: the message goes into a shared queue, the event is the target's.
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  PairWish unconnected;
  unconnected.connected = false;
  start(unconnected);
  Pair& pair = *pair_;
  QpWish wish;
  wish.type = IBV_QPT_XRC_SEND;
  const QpInfo sender = pair.a.create_qp(wish);
  wish.type = IBV_QPT_XRC_RECV;
  const QpInfo target = pair.b.create_qp(wish);
  SrqWish shared;
  shared.xrc = 1;
  const SrqInfo queue = pair.b.create_srq(shared);
  connect(sender, target);
  expect_posted(pair.b.post_srq_receive(queue, {receive(1, slice(to_, 0, 64))}));
  Request request = send(2, slice(from_, 0, 8));
  request.remote_srqn = queue.srqn;
  expect_posted(pair.a.post_send(sender, request));
  EXPECT_EQ((pair.b.call<&Endpoint::poll>(queue.cq, 1u, kDefaultWaitMs)[0].status), IBV_WC_SUCCESS);
  expect_told(target);
}

ibv_qp_attr draining(bool tells) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_SQD;
  attr.en_sqd_async_notify = tells;
  return attr;
}
constexpr int kDrain = IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY;

TEST_P(Async, ASendQueueThatHasDrainedSaysSo) {
  // IBTA 10.3.1.5, 11.6.3.2.
  Pair pair(GetParam());
  drain(pair.a, pair.qa);
  expect_none(pair.a);
}

TEST_P(Async, ASendQueueThatWasNotAskedToDrainsInSilence) {
  Pair pair(GetParam());
  ASSERT_EQ(pair.a.call<&Endpoint::modify_qp>(pair.qa.id, draining(false), int{kDrain}), 0);
  EXPECT_EQ(pair.a.state(pair.qa), IBV_QPS_SQD);
  SKIP_IF(quirk_of(pair.qa.vendor, kTellsOfEveryDrain));
  expect_none(pair.a);
}

TEST_P(Async, ASendQueueThatWentRoundDrainsToo) {
  // What its slots held does not count.
  PairWish wish;
  wish.a.send_depth = 4;
  Pair pair(GetParam(), wish);
  const RegionInfo local = pair.a.allocate(memory(), 64);
  const RegionInfo remote = pair.b.allocate(memory(), 64);
  for (int i = 0; i < 70; ++i) {
    expect_posted(pair.a.post_send(pair.qa, write(1, slice(local, 0, 8), remote)));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_RDMA_WRITE, pair.qa);
  }
  drain(pair.a, pair.qa);
  ASSERT_EQ(pair.a.to_state(pair.qa, IBV_QPS_RTS), 0);
  expect_posted(pair.a.post_send(pair.qa, write(2, slice(local, 0, 8), remote)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_RDMA_WRITE, pair.qa);
}

TEST_P(Async, WhatIsPostedWhileItDrainsWaitsUntilItSendsAgain) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(memory(), 64);
  const RegionInfo remote = pair.b.allocate(memory(), 64);
  drain(pair.a, pair.qa);
  expect_posted(pair.a.post_send(pair.qa, write(1, slice(local, 0, 8), remote)));
  EXPECT_TRUE(pair.a.poll_once(pair.qa.send_cq, 1).empty());
  ASSERT_EQ(pair.a.to_state(pair.qa, IBV_QPS_RTS), 0);
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_RDMA_WRITE, pair.qa);
}

TEST_P(Async, AQueuePairThatDrainsStillReceives) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(memory(), 64);
  const RegionInfo remote = pair.b.allocate(memory(), 64);
  ASSERT_EQ(pair.a.to_state(pair.qa, IBV_QPS_SQD), 0);
  expect_posted(pair.a.post_receive(pair.qa, receive(1, slice(local, 0, 64))));
  expect_posted(pair.b.post_send(
      pair.qb, {send(2, slice(remote, 0, 8)), write(3, slice(remote, 0, 8), local, 32)}));
  expect_receive(pair.a.poll_receives(pair.qa, 1)[0], 1, 8, pair.qa);
  expect_wc(pair.b.poll_sends(pair.qb, 2)[1], 3, IBV_WC_RDMA_WRITE, pair.qb);
}

class AsyncOfOne : public OnDevice {
 protected:
  /// Raises an event of a fresh queue pair, which is returned.
  ibv_qp* raise() {
    ibv_qp* const raised = qp(IBV_QPT_RC, cq());
    EXPECT_EQ(lead(raised, IBV_QPS_RTS), 0);
    ibv_qp_attr attr = draining(true);
    EXPECT_EQ(ibv_modify_qp(raised, &attr, kDrain), 0);
    return raised;
  }
  bool readable(int wait_ms = kDefaultWaitMs) {
    pollfd wait{context()->async_fd, POLLIN, 0};
    return ::poll(&wait, 1, wait_ms) == 1;
  }
};
RUN_ON_EVERY_DEVICE(AsyncOfOne);

TEST_P(AsyncOfOne, TheDescriptorIsReadableWhileEventsWait) {
  EXPECT_FALSE(readable(0));
  ibv_qp* const raised = raise();
  EXPECT_TRUE(readable());
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(context(), &event), 0);
  EXPECT_EQ(event.element.qp, raised);
  EXPECT_FALSE(readable(0));
  ibv_ack_async_event(&event);
}

TEST_P(AsyncOfOne, EventsComeInTheirOrder) {
  // A kernel's driver drains each queue in a task of its own, so only what waits already is known
  // to be older than what is asked for next.
  ibv_qp* older = raise();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(readable());
    ibv_qp* const newer = raise();
    ibv_async_event event{};
    ASSERT_EQ(ibv_get_async_event(context(), &event), 0);
    EXPECT_EQ(event.event_type, IBV_EVENT_SQ_DRAINED);
    EXPECT_EQ(event.element.qp, older);
    ibv_ack_async_event(&event);
    older = newer;
  }
}

TEST_P(AsyncOfOne, WithoutOneANonBlockingDescriptorAnswersAtOnce) {
  const int fd = context()->async_fd;
  ASSERT_EQ(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
  ibv_async_event event{};
  errno = 0;
  EXPECT_EQ(ibv_get_async_event(context(), &event), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_P(AsyncOfOne, WakesWhoSleepsForIt) {
  ibv_async_event event{};
  std::thread sleeper([&] { EXPECT_EQ(ibv_get_async_event(context(), &event), 0); });
  ibv_qp* const raised = raise();
  sleeper.join();
  EXPECT_EQ(event.element.qp, raised);
  ibv_ack_async_event(&event);
}

/// man ibv_get_async_event: "All async events must be acknowledged" before destroying the object.
template <class Destroy>
void expect_waits_for(ibv_async_event& event, const Destroy& destroys) {
  std::atomic<int> step{0};
  std::thread destroyer([&] {
    step = 1;
    EXPECT_EQ(destroys(), 0);
    step = 2;
  });
  EXPECT_TRUE(wait_until([&] { return step >= 1; }));
  for (int i = 0; i < 50; ++i) sched_yield();
  EXPECT_EQ(step, 1) << "it did not wait";
  ibv_ack_async_event(&event);
  destroyer.join();
}

TEST_P(AsyncOfOne, AQueuePairIsNotDestroyedUntilItsEventsAreAcknowledged) {
  ibv_qp* const raised = raise();
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(context(), &event), 0);
  expect_waits_for(event, [&] { return destroy(raised); });
}

TEST_P(AsyncOfOne, ACompletionQueueIsNotDestroyedUntilItsEventsAreAcknowledged) {
  expect_complaints();
  CqHandle small(ibv_create_cq(context(), 1, nullptr, nullptr, 0));
  ASSERT_NE(small, nullptr);
  ibv_qp_init_attr init{};
  init.qp_type = IBV_QPT_RC;
  init.send_cq = init.recv_cq = small.get();
  init.cap = {static_cast<std::uint32_t>(small->cqe + 8), 1, 1, 1, 0};
  {
    // Flushed requests overrun it.
    const QpHandle by(ibv_create_qp(pd(), &init));
    ASSERT_EQ(lead(by.get(), IBV_QPS_ERR), 0);
    for (int i = 0; i < small->cqe + 4; ++i) ASSERT_EQ(post_send(by.get(), 1, nullptr, 0, 0), 0);
    ASSERT_TRUE(readable());
  }
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(context(), &event), 0);
  ASSERT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(event.element.cq, small.get());
  expect_waits_for(event, [&] { return ibv_destroy_cq(small.release()); });
}

TEST_P(AsyncOfOne, ASharedReceiveQueueIsNotDestroyedUntilItsEventsAreAcknowledged) {
  SKIP_IF(lacks_srq(GetParam()));
  ibv_srq_init_attr init{nullptr, {8, 1, 0}};
  SrqHandle shared(ibv_create_srq(pd(), &init));
  ASSERT_NE(shared, nullptr);
  ibv_cq* const both = cq();
  ibv_qp* const a = qp(IBV_QPT_RC, both);
  ibv_qp* const b = qp(IBV_QPT_RC, both, shared.get());
  ASSERT_EQ(lead(a, IBV_QPS_RTS, b), 0);
  ASSERT_EQ(lead(b, IBV_QPS_RTS, a), 0);
  for (int i = 0; i < 4; ++i) {
    ibv_recv_wr nothing{};
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_srq_recv(shared.get(), &nothing, &bad), 0);
  }
  ibv_srq_attr armed{};
  armed.srq_limit = 3;
  ASSERT_EQ(ibv_modify_srq(shared.get(), &armed, IBV_SRQ_LIMIT), 0);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(post_send(a, 1, nullptr, 0, 0), 0);
  for (const ibv_wc& wc : poll(both, 4)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  ASSERT_TRUE(readable());
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(context(), &event), 0);
  ASSERT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(event.element.srq, shared.get());
  ASSERT_EQ(destroy(b), 0);
  expect_waits_for(event, [&] { return ibv_destroy_srq(shared.release()); });
}

TEST_P(AsyncOfOne, TheUntakenEventsOfADestroyedQueuePairAreForgotten) {
  ASSERT_EQ(destroy(raise()), 0);
  ibv_qp* const next = raise();
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(context(), &event), 0);
  EXPECT_EQ(event.element.qp, next);
  ibv_ack_async_event(&event);
  EXPECT_FALSE(readable(0));
}

TEST_P(AsyncOfOne, EventsBelongToTheContextOfTheirObject) {
  const Session other(GetParam());
  raise();
  EXPECT_TRUE(readable());
  pollfd wait{other.context->async_fd, POLLIN, 0};
  EXPECT_EQ(::poll(&wait, 1, 0), 0);
}

}  // namespace
}  // namespace verbatim::harness
