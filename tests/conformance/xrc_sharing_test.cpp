// SPDX-License-Identifier: BSD-2-Clause
//
// What an XRC connection reaches, and what it may not, when its target, its queues and its senders
// are in different processes (IBTA annex A14; man ibv_open_xrcd, ibv_open_qp, ibv_post_send).
#include "tests/support/xrc_sharing.hpp"

namespace verbatim::harness {
namespace {

class XrcSharing : public BetweenProcesses {};
RUN_OVER_SETTINGS(XrcSharing, on_every_device(between_processes()));

TEST_P(XrcSharing, OneConnectionReachesTheQueuesOfSeveralProcessesInOrder) {
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  constexpr std::uint64_t kEach = 40;
  start();
  const auto d = process();
  const SrqInfo at_b = queue(*b), at_d = queue(*d);
  const RegionInfo b_into = b->allocate(memory(), 64_KiB), d_into = d->allocate(memory(), 64_KiB);
  for (std::uint64_t i = 0; i < kEach; ++i) {
    expect_posted(b->post_srq_receive(at_b, {receive(i, slice(b_into, i * 1024, 1024))}));
    expect_posted(c->post_srq_receive(shared, {receive(i, slice(into, i * 1024, 1024))}));
    expect_posted(d->post_srq_receive(at_d, {receive(i, slice(d_into, i * 1024, 1024))}));
  }
  const SrqInfo* const queues[] = {&at_b, &shared, &at_d};
  a->fill(from, 0, 3 * kEach * 100, 7);
  std::vector<Request> all;
  for (std::uint64_t i = 0; i < 3 * kEach; ++i)
    all.push_back(to(*queues[i % 3], send(i, slice(from, i * 100, 20 + i % 80))));
  expect_posted(a->post_send(way.sender, all));
  const auto done = a->poll_sends(way.sender, 3 * kEach);
  for (std::uint64_t i = 0; i < 3 * kEach; ++i) expect_wc(done[i], i, IBV_WC_SEND, way.sender);
  Side* const sides[] = {b.get(), c.get(), d.get()};
  const RegionInfo* const places[] = {&b_into, &into, &d_into};
  for (std::uint64_t q = 0; q < 3; ++q) {
    for (std::uint64_t i = 0; i < kEach; ++i) {
      const ibv_wc wc = received(*sides[q], *queues[q]);
      const std::uint64_t number = i * 3 + q;
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      ASSERT_EQ(wc.wr_id, i);
      EXPECT_EQ(wc.qp_num, way.target.qpn) << "the connection that brought it";
      ASSERT_EQ(wc.byte_len, 20 + number % 80);
      ASSERT_EQ(sides[q]->peek(*places[q], i * 1024, wc.byte_len),
                a->peek(from, number * 100, wc.byte_len));
    }
  }
}

TEST_P(XrcSharing, ConnectionsOfSeveralProcessesShareAQueue) {
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  start();
  const auto d = process();
  const Connection second = connect(*d, *b);
  const RegionInfo d_from = d->allocate(memory(), 4096);
  for (std::uint64_t i = 0; i < 20; ++i) post(i, i * 64, 64);
  a->fill(from, 0, 64, 1);
  d->fill(d_from, 0, 64, 2);
  for (std::uint64_t i = 0; i < 10; ++i) {
    expect_posted(a->post_send(way.sender, to(shared, send(i, slice(from, 0, 64)))));
    expect_posted(d->post_send(second.sender, to(shared, send(i, slice(d_from, 0, 64)))));
  }
  EXPECT_EQ(a->poll_sends(way.sender, 10).size(), 10u);
  EXPECT_EQ(d->poll_sends(second.sender, 10).size(), 10u);
  int by_a = 0;
  for (std::uint64_t i = 0; i < 20; ++i) {
    const ibv_wc wc = received(*c, shared);
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    ASSERT_EQ(wc.wr_id, i) << "receives are used up in the order of posting";
    const bool from_a = wc.qp_num == way.target.qpn;
    if (!from_a) {
      ASSERT_EQ(wc.qp_num, second.target.qpn);
    }
    by_a += from_a ? 1 : 0;
    ASSERT_EQ(c->mismatch(into, i * 64, 64, from_a ? 1 : 2), -1);
  }
  EXPECT_EQ(by_a, 10);
}

TEST_P(XrcSharing, ATargetAnswersOnlyWhomItNames) {
  // IBTA 9.7: a connection has two ends; another sender's packets are none of its.
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  Link impatient;
  impatient.timeout = 8;
  impatient.retry_count = 1;
  start();
  post(1, 0, 64);
  EXPECT_EQ(do_one(to(shared, send(1, slice(from, 0, 8)))).status, IBV_WC_SUCCESS);
  QpWish wish;
  wish.type = IBV_QPT_XRC_SEND;
  const QpInfo other = a->create_qp(wish);
  a->connect(other, way.target, impatient);
  post(2, 0, 64);
  expect_posted(a->post_send(other, to(shared, send(2, slice(from, 0, 8)))));
  expect_error(a->poll_sends(other, 1)[0], 2, IBV_WC_RETRY_EXC_ERR, other);
  EXPECT_EQ(do_one(to(shared, send(3, slice(from, 0, 8)))).status, IBV_WC_SUCCESS);
}

TEST_P(XrcSharing, AQueueOfAnotherDomainIsNotReached) {
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  start();
  const auto stranger = process("other");
  const SrqInfo theirs = queue(*stranger);
  const RegionInfo there = stranger->allocate(memory(), 4096);
  stranger->set(there, 0, 4096, 0xEE);
  expect_posted(stranger->post_srq_receive(theirs, {receive(1, slice(there, 0, 64))}));
  a->fill(from, 0, 64, 3);
  expect_status(do_one(to(theirs, send(1, slice(from, 0, 64)))), 1,
                {IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_OP_ERR,
                 IBV_WC_REM_INV_RD_REQ_ERR});
  EXPECT_EQ(a->state(way.sender), IBV_QPS_ERR);
  EXPECT_NE(b->take_async_event().type, -1) << "the target ends too";
  EXPECT_EQ(b->state(way.target), IBV_QPS_ERR);
  EXPECT_TRUE(stranger->poll_once(theirs.cq, 1).empty());
  expect_untouched(*stranger, there, 0, 4096, 0xEE);
}

TEST_P(XrcSharing, AQueuePairsNumberIsNoQueues) {
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  start();
  SrqInfo nobody = shared;
  nobody.srqn = way.target.qpn;
  expect_status(do_one(to(nobody, send(1, slice(from, 0, 8)))), 1,
                {IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_OP_ERR,
                 IBV_WC_REM_INV_RD_REQ_ERR});
}

TEST_P(XrcSharing, ADestroyedQueueIsNotReached) {
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  start();
  post(1, 0, 64);
  EXPECT_EQ(do_one(to(shared, send(1, slice(from, 0, 8)))).status, IBV_WC_SUCCESS);
  EXPECT_EQ(received(*c, shared).wr_id, 1u);
  ASSERT_EQ(c->call<&Endpoint::destroy_srq>(shared.id), 0);
  expect_status(do_one(to(shared, send(2, slice(from, 0, 8)))), 2,
                {IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_OP_ERR,
                 IBV_WC_REM_INV_RD_REQ_ERR});
}

TEST_P(XrcSharing, ReceiverNotReadyEndsTheSenderWhenItsRetriesAreUsedUp) {
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  Link link;
  link.rnr_retry = 1;
  link.min_rnr_timer = 1;
  start(link, link);
  post(1, 0, 64);
  EXPECT_EQ(do_one(to(shared, send(1, slice(from, 0, 8)))).status, IBV_WC_SUCCESS);
  EXPECT_EQ(do_one(to(shared, send(2, slice(from, 0, 8)))).status, IBV_WC_RNR_RETRY_EXC_ERR);
}

TEST_P(XrcSharing, KeysAreJudgedInTheDomainOfTheQueue) {
  // IBTA A14.4.3: the protection domain of a request's memory is that of the queue it names.
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  start();
  a->fill(from, 0, 64, 4);
  EXPECT_EQ(do_one(to(shared, write(1, slice(from, 0, 64), into, 64))).status, IBV_WC_SUCCESS);
  EXPECT_EQ(c->mismatch(into, 64, 64, 4), -1);
  EXPECT_EQ(do_one(to(shared, read(2, slice(from, 1024, 64), into, 64))).status, IBV_WC_SUCCESS);
  EXPECT_EQ(a->mismatch(from, 1024, 64, 4), -1);
  c->store(into, 0, 5);
  EXPECT_EQ(do_one(to(shared, compare_swap(3, slice(from, 2048, 8), into, 0, 5, 9))).status,
            IBV_WC_SUCCESS);
  EXPECT_EQ(c->load(into, 0), 9u);
  EXPECT_EQ(a->load(from, 2048), 5u);
  const RegionInfo foreign = c->register_foreign(into);
  EXPECT_EQ(do_one(to(shared, write(4, slice(from, 0, 64), foreign))).status,
            IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(b->take_async_event().type, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_EQ(b->state(way.target), IBV_QPS_ERR);
  EXPECT_EQ(c->load(into, 0), 9u);
}

TEST_P(XrcSharing, TheTargetsRightsAreAsked) {
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  Link read_only;
  read_only.access = IBV_ACCESS_REMOTE_READ;
  start({}, read_only);
  c->set(into, 0, 64, 0xEE);
  EXPECT_EQ(do_one(to(shared, read(1, slice(from, 0, 64), into))).status, IBV_WC_SUCCESS);
  expect_status(do_one(to(shared, write(2, slice(from, 64, 64), into))), 2,
                {IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR});
  expect_untouched(*c, into, 0, 64, 0xEE);
}

TEST_P(XrcSharing, RightsThatTheTargetGetsLaterHold) {
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  Link read_only;
  read_only.access = IBV_ACCESS_REMOTE_READ;
  start({}, read_only);
  EXPECT_EQ(do_one(to(shared, read(1, slice(from, 0, 64), into))).status, IBV_WC_SUCCESS);
  ibv_qp_attr attr{};
  attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  ASSERT_EQ(b->call<&Endpoint::modify_qp>(way.target.id, attr, IBV_QP_ACCESS_FLAGS), 0);
  a->fill(from, 0, 64, 6);
  EXPECT_EQ(do_one(to(shared, write(2, slice(from, 0, 64), into))).status, IBV_WC_SUCCESS);
  EXPECT_EQ(c->mismatch(into, 0, 64, 6), -1);
}

TEST_P(XrcSharing, AMessageLongerThanItsReceiveEndsTheConnection) {
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  start();
  post(1, 0, 32);
  EXPECT_EQ(do_one(to(shared, send(1, slice(from, 0, 33)))).status, IBV_WC_REM_INV_REQ_ERR);
  const ibv_wc wc = received(*c, shared);
  EXPECT_EQ(wc.status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(wc.wr_id, 1u);
  EXPECT_EQ(wc.qp_num, way.target.qpn);
  EXPECT_NE(b->take_async_event().type, -1);
  EXPECT_EQ(b->state(way.target), IBV_QPS_ERR);
}

TEST_P(XrcSharing, TheQueueServesOthersAfterOneConnectionFailed) {
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  start();
  const Connection second = connect(*a, *b);
  post(1, 0, 32);
  EXPECT_EQ(do_one(to(shared, send(1, slice(from, 0, 33)))).status, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(received(*c, shared).status, IBV_WC_LOC_LEN_ERR);
  post(2, 0, 64);
  expect_posted(a->post_send(second.sender, to(shared, send(2, slice(from, 0, 33)))));
  expect_wc(sent(second), 2, IBV_WC_SEND, second.sender);
  const ibv_wc wc = received(*c, shared);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.qp_num, second.target.qpn);
}

TEST_P(XrcSharing, AWriteIsSeenBeforeTheMessageAfterItWhicheverQueueThatGoesTo) {
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  start();
  const SrqInfo second = queue(*c);
  for (std::uint64_t round = 1; round <= 50; ++round) {
    expect_posted(c->post_srq_receive(second, {receive(round, slice(into, 0, 8))}));
    a->store(from, 0, round);
    expect_posted(a->post_send(
        way.sender, {to(shared, write(round, slice(from, 0, 8), into, 1024)).unsignaled(),
                     to(second, send(round, slice(from, 0, 8)))}));
    ASSERT_EQ(received(*c, second).wr_id, round);
    ASSERT_EQ(c->load(into, 1024), round);
    ASSERT_EQ(sent(way).wr_id, round);
  }
}

TEST_P(XrcSharing, LargeMessagesArriveWhole) {
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  start();
  a->fill(from, 0, 256_KiB, 9);
  for (const std::uint64_t size : {56_KiB, 200_KiB}) {
    post(size, 0, 256_KiB);
    EXPECT_EQ(do_one(to(shared, send(1, slice(from, 0, size)))).status, IBV_WC_SUCCESS);
    EXPECT_EQ(received(*c, shared).byte_len, size);
    EXPECT_EQ(c->mismatch(into, 0, size, 9), -1);
  }
}

TEST_P(XrcSharing, AMessageWakesWhoSleepsOnTheQueuesCompletions) {
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  start();
  SrqWish wish;
  wish.with_channel = 1;
  const SrqInfo awaited = queue(*c, wish);
  for (std::uint64_t i = 0; i < 3; ++i) {
    expect_posted(c->post_srq_receive(awaited, {receive(i, slice(into, 0, 64))}));
    ASSERT_EQ(c->call<&Endpoint::arm>(awaited.cq, 0), 0);
    EXPECT_EQ(do_one(to(awaited, send(i, slice(from, 0, 64)))).status, IBV_WC_SUCCESS);
    EXPECT_EQ(c->call<&Endpoint::take_event>(awaited.cq, kDefaultWaitMs), awaited.cq);
    EXPECT_EQ(received(*c, awaited).wr_id, i);
  }
}

TEST_P(XrcSharing, TheQueueSaysOnceThatItRunsLow) {
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  start();
  for (std::uint64_t i = 0; i < 4; ++i) post(i, 0, 64);
  ASSERT_EQ(c->call<&Endpoint::modify_srq>(shared.id, ibv_srq_attr{0, 0, 3}, IBV_SRQ_LIMIT), 0);
  for (std::uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(do_one(to(shared, send(i, slice(from, 0, 8)))).status, IBV_WC_SUCCESS);
    EXPECT_EQ(received(*c, shared).wr_id, i);
  }
  EXPECT_EQ(c->take_async_event().type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(c->take_async_event(0).type, -1);
}

TEST_P(XrcSharing, ATargetStaysAsLongAsSomebodyHasItOpen) {
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  Link link;
  link.timeout = 8;
  link.retry_count = 1;
  start(link);
  post(1, 0, 64);
  EXPECT_EQ(do_one(to(shared, send(1, slice(from, 0, 8)))).status, IBV_WC_SUCCESS);
  const QpInfo opened = c->call<&Endpoint::open_qp>(way.target.qpn);
  ASSERT_EQ(b->call<&Endpoint::destroy_qp>(way.target.id), 0);
  post(2, 0, 64);
  EXPECT_EQ(do_one(to(shared, send(2, slice(from, 0, 8)))).status, IBV_WC_SUCCESS);
  EXPECT_EQ(c->state(opened), IBV_QPS_RTS);
  ASSERT_EQ(c->call<&Endpoint::destroy_qp>(opened.id), 0);
  // Its process hears of it when it looks.
  post(3, 0, 64);
  ibv_wc_status last = IBV_WC_SUCCESS;
  EXPECT_TRUE(wait_until([&] {
    post(3, 0, 64);
    last = do_one(to(shared, send(3, slice(from, 0, 8)))).status;
    if (last == IBV_WC_SUCCESS) received(*c, shared);
    return last != IBV_WC_SUCCESS;
  }));
  EXPECT_EQ(last, IBV_WC_RETRY_EXC_ERR);
}

TEST_P(XrcSharing, WhoHasATargetOpenHearsOfItsEnd) {
  // man ibv_open_qp: events are delivered to all who have it open.
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  start();
  const QpInfo opened = c->call<&Endpoint::open_qp>(way.target.qpn);
  const RegionInfo foreign = c->register_foreign(into);
  EXPECT_EQ(do_one(to(shared, write(1, slice(from, 0, 64), foreign))).status,
            IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(b->take_async_event().type, IBV_EVENT_QP_ACCESS_ERR);
  const AsyncEvent event = c->take_async_event();
  EXPECT_EQ(event.type, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_EQ(event.qp, opened.id);
  EXPECT_EQ(c->state(opened), IBV_QPS_ERR);
}

TEST_P(XrcSharing, AConnectionIsMadeAnewAfterAnError) {
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  start();
  for (std::uint32_t round = 0; round < 3; ++round) {
    post(1, 0, 64);
    a->fill(from, 0, 64, round);
    EXPECT_EQ(do_one(to(shared, send(1, slice(from, 0, 64)))).status, IBV_WC_SUCCESS);
    EXPECT_EQ(received(*c, shared).byte_len, 64u);
    EXPECT_EQ(c->mismatch(into, 0, 64, round), -1);
    EXPECT_EQ(do_one(to(shared, write(2, slice(from, 0, 8), into, 256_KiB))).status,
              IBV_WC_REM_ACCESS_ERR);
    ASSERT_EQ(b->take_async_event().type, IBV_EVENT_QP_ACCESS_ERR);
    ASSERT_EQ(a->to_state(way.sender, IBV_QPS_RESET), 0);
    ASSERT_EQ(b->to_state(way.target, IBV_QPS_RESET), 0);
    a->connect(way.sender, way.target);
    b->connect(way.target, way.sender);
  }
}

TEST_P(XrcSharing, ResettingTheTargetEndsTheSender) {
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  Link link;
  link.timeout = 8;
  link.retry_count = 1;
  start(link);
  post(1, 0, 64);
  post(2, 0, 64);
  EXPECT_EQ(do_one(to(shared, send(1, slice(from, 0, 8)))).status, IBV_WC_SUCCESS);
  ASSERT_EQ(b->to_state(way.target, IBV_QPS_RESET), 0);
  EXPECT_EQ(do_one(to(shared, send(2, slice(from, 0, 8)))).status, IBV_WC_RETRY_EXC_ERR);
}

}  // namespace
}  // namespace verbatim::harness
