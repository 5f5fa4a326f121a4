// SPDX-License-Identifier: BSD-2-Clause
//
// Shared receive queues (IBTA 10.2.9, 11.2.8; man ibv_create_srq, ibv_modify_srq, ibv_query_srq,
// ibv_post_srq_recv).
#include <algorithm>
#include <cerrno>

#include "tests/support/quirks.hpp"
#include "tests/support/two_sides.hpp"

namespace verbatim::harness {
namespace {

constexpr std::uint64_t kSlot = 256;

/// `b` receives from a shared queue, `a` sends by several queue pairs.
struct Shared {
  Pair pair;
  SrqInfo srq;
  RegionInfo from, to;
  std::vector<QpInfo> senders, receivers;

  explicit Shared(const Setting& setting, int connections = 1, const SrqWish& wish = {},
                  const Link& link_a = {}, const Link& link_b = {.min_rnr_timer = 1})
      : pair(setting, unconnected()),
        srq(pair.b.create_srq(wish)),
        from(pair.a.allocate(setting.memory, 64 * kSlot)),
        to(pair.b.allocate(setting.memory, 64 * kSlot)) {
    QpWish receiver;
    receiver.srq = srq.id;
    receiver.receive_depth = 0;
    for (int i = 0; i < connections; ++i) {
      senders.push_back(pair.a.create_qp());
      receivers.push_back(pair.b.create_qp(receiver));
      receiver.receive_cq = receivers.front().receive_cq;
      pair.a.connect(senders.back(), receivers.back(), link_a);
      pair.b.connect(receivers.back(), senders.back(), link_b);
    }
  }
  static PairWish unconnected() {
    PairWish wish;
    wish.connected = false;
    return wish;
  }
  Receive slot(std::uint64_t i) { return receive(i, slice(to, (i % 64) * kSlot, kSlot)); }
  void post(std::uint64_t first, int count) {
    std::vector<Receive> list;
    for (int i = 0; i < count; ++i) list.push_back(slot(first + static_cast<std::uint64_t>(i)));
    expect_posted(pair.b.post_srq_receive(srq, list));
  }
  void send_one(std::size_t by, std::uint64_t id, std::uint64_t size = 16) {
    expect_posted(pair.a.post_send(senders[by], send(id, slice(from, 0, size))));
    expect_wc(pair.a.poll_sends(senders[by], 1)[0], id, IBV_WC_SEND, senders[by]);
  }
  ibv_wc next() { return pair.b.poll_receives(receivers[0], 1)[0]; }
  /// The verb's answer.
  int resize(std::uint32_t receives) {
    ibv_srq_attr wanted{};
    wanted.max_wr = receives;
    return pair.b.call<&Endpoint::modify_srq>(srq.id, wanted, int{IBV_SRQ_MAX_WR});
  }
};

class Srq : public BetweenTwo {
 protected:
  std::string lacks_resize() const {
    const Session asked(device());
    return (asked.attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE) != 0
               ? std::string()
               : "the device has no IBV_DEVICE_SRQ_RESIZE";
  }
};
RUN_OVER_SETTINGS(Srq, on_every_device(each_way()));

TEST_P(Srq, FeedsEveryQueuePairThatSharesIt) {
  SKIP_IF(lacks_srq(device()));
  Shared shared(GetParam(), 4);
  shared.post(0, 12);
  for (std::uint64_t i = 0; i < 12; ++i) {
    const std::size_t by = (i * 7) % 4;
    shared.send_one(by, i);
    const ibv_wc wc = shared.next();
    expect_receive(wc, i, 16, shared.receivers[by]);
  }
}

TEST_P(Srq, PutsEachMessageIntoTheReceiveThatItTook) {
  SKIP_IF(lacks_srq(device()));
  Shared shared(GetParam(), 2);
  shared.post(0, 10);
  for (std::uint32_t i = 0; i < 10; ++i) {
    const std::uint64_t size = 1 + i * 25;
    shared.pair.a.fill(shared.from, 0, size, i);
    shared.send_one(i % 2, i, size);
    const ibv_wc wc = shared.next();
    EXPECT_EQ(wc.byte_len, size);
    EXPECT_EQ(shared.pair.b.mismatch(shared.to, wc.wr_id * kSlot, size, i), -1);
  }
}

TEST_P(Srq, GetsThePiecesOfAnInlineRequestBehindEachOther) {
  // IBTA 11.4.1.1: the gather list's order.
  SKIP_IF(lacks_srq(device()));
  Shared shared(GetParam());
  const QpInfo& sender = shared.senders[0];
  std::uint32_t id = 0;
  for (const std::vector<std::uint32_t>& pieces : {std::vector<std::uint32_t>{8, 24},
                                                   {1, 1},
                                                   {3, 5},
                                                   {0, 8},
                                                   {8, 0},
                                                   {24, 32},
                                                   {24, 33},
                                                   {40, 40}}) {
    SCOPED_TRACE(::testing::PrintToString(pieces));
    const std::uint32_t bytes = pieces[0] + pieces[1];
    if (bytes > sender.cap.max_inline_data || sender.cap.max_send_sge < 2) continue;
    shared.post(id, 1);
    shared.pair.a.fill(shared.from, 0, bytes, id);
    expect_posted(shared.pair.a.post_send(
        sender,
        send(id, {slice(shared.from, 0, pieces[0]), slice(shared.from, pieces[0], pieces[1])})
            .with(IBV_SEND_INLINE)));
    expect_wc(shared.pair.a.poll_sends(sender, 1)[0], id, IBV_WC_SEND, sender);
    expect_receive(shared.next(), id, bytes, shared.receivers[0]);
    EXPECT_EQ(shared.pair.b.mismatch(shared.to, id * kSlot, bytes, id), -1);
    ++id;
  }
  EXPECT_GT(id, 0u);
}

TEST_P(Srq, TakesReceivesInTheOrderOfTheirPosts) {
  // IBTA 10.2.9.5: of one queue pair's messages.
  SKIP_IF(lacks_srq(device()));
  Shared shared(GetParam());
  for (std::uint64_t round = 0; round < 5; ++round) {
    shared.post(round * 20, 20);
    for (std::uint64_t i = 0; i < 20; ++i) shared.send_one(0, i);
    const auto got = shared.pair.b.poll_receives(shared.receivers[0], 20);
    for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(got[i].wr_id, round * 20 + i);
  }
}

TEST_P(Srq, ThatIsEmptyMakesTheSenderWait) {
  SKIP_IF(lacks_srq(device()));
  Shared shared(GetParam());
  expect_posted(shared.pair.a.post_send(shared.senders[0], send(1, slice(shared.from, 0, 8))));
  EXPECT_TRUE(shared.pair.a.poll_once(shared.senders[0].send_cq, 1).empty());
  shared.post(5, 1);
  expect_receive(shared.next(), 5, 8, shared.receivers[0]);
  expect_wc(shared.pair.a.poll_sends(shared.senders[0], 1)[0], 1, IBV_WC_SEND, shared.senders[0]);
}

TEST_P(Srq, ThatStaysEmptyEndsInRnrRetryExceeded) {
  SKIP_IF(lacks_srq(device()));
  Link few;
  few.rnr_retry = 1;
  Shared shared(GetParam(), 1, {}, few);
  expect_posted(shared.pair.a.post_send(shared.senders[0], send(1, slice(shared.from, 0, 8))));
  expect_error(shared.pair.a.poll_sends(shared.senders[0], 1)[0], 1, IBV_WC_RNR_RETRY_EXC_ERR,
               shared.senders[0]);
}

TEST_P(Srq, SaysOnceThatItRunsLow) {
  // man ibv_modify_srq: once the number of receives drops below the limit; then it is unarmed.
  SKIP_IF(lacks_srq(device()));
  Shared shared(GetParam());
  shared.post(0, 8);
  ibv_srq_attr limit{};
  limit.srq_limit = 4;
  ASSERT_EQ(shared.pair.b.call<&Endpoint::modify_srq>(shared.srq.id, limit, int{IBV_SRQ_LIMIT}), 0);
  EXPECT_EQ(shared.pair.b.call<&Endpoint::query_srq>(shared.srq.id).srq_limit, 4u);
  for (std::uint64_t i = 0; i < 4; ++i) {
    shared.send_one(0, i);
    shared.next();
  }
  EXPECT_EQ(shared.pair.b.take_async_event(0).type, -1) << "four are left";
  shared.send_one(0, 4);
  shared.next();
  const AsyncEvent event = shared.pair.b.take_async_event();
  EXPECT_EQ(event.type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(event.srq, shared.srq.id);
  EXPECT_EQ(shared.pair.b.call<&Endpoint::query_srq>(shared.srq.id).srq_limit, 0u);
  shared.send_one(0, 5);
  shared.next();
  EXPECT_EQ(shared.pair.b.take_async_event(0).type, -1);
}

TEST_P(Srq, SaysAgainWhenItIsArmedAgain) {
  SKIP_IF(lacks_srq(device()));
  Shared shared(GetParam());
  ibv_srq_attr limit{};
  limit.srq_limit = 3;
  for (std::uint64_t round = 0; round < 4; ++round) {
    shared.post(round * 3, 3);
    ASSERT_EQ(shared.pair.b.call<&Endpoint::modify_srq>(shared.srq.id, limit, int{IBV_SRQ_LIMIT}),
              0);
    for (std::uint64_t i = 0; i < 3; ++i) {
      shared.send_one(0, i);
      shared.next();
    }
    EXPECT_EQ(shared.pair.b.take_async_event().type, IBV_EVENT_SRQ_LIMIT_REACHED) << round;
  }
  EXPECT_EQ(shared.pair.b.take_async_event(0).type, -1);
}

TEST_P(Srq, ArmedWhenItIsLowAlreadySaysSo) {
  // IBTA 11.2.8.3: the event is due as soon as fewer are left than the limit.
  SKIP_IF(lacks_srq(device()));
  Shared shared(GetParam());
  shared.post(0, 2);
  ibv_srq_attr limit{};
  limit.srq_limit = 5;
  ASSERT_EQ(shared.pair.b.call<&Endpoint::modify_srq>(shared.srq.id, limit, int{IBV_SRQ_LIMIT}), 0);
  shared.send_one(0, 1);
  shared.next();
  EXPECT_EQ(shared.pair.b.take_async_event().type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(shared.pair.b.take_async_event(0).type, -1);
}

TEST_P(Srq, ArmedWithFewerReceivesThanItsLimitSaysSoAtOnce) {
  // IBTA 10.2.9.3; mlx4 and mlx5 do. With none left no message can use one up, and senders wait for
  // the program that waits for the event.
  SKIP_IF(lacks_srq(device()));
  Shared shared(GetParam());
  SKIP_IF(quirk_of(shared.receivers[0].vendor, kLimitToldByTheNextReceive));
  ibv_srq_attr limit{};
  limit.srq_limit = 2;
  for (std::uint64_t left = 0; left < 2; ++left) {
    SCOPED_TRACE(left);
    ASSERT_EQ(shared.pair.b.call<&Endpoint::modify_srq>(shared.srq.id, limit, int{IBV_SRQ_LIMIT}),
              0);
    const AsyncEvent event = shared.pair.b.take_async_event();
    EXPECT_EQ(event.type, IBV_EVENT_SRQ_LIMIT_REACHED);
    EXPECT_EQ(event.srq, shared.srq.id);
    EXPECT_EQ(shared.pair.b.call<&Endpoint::query_srq>(shared.srq.id).srq_limit, 0u);
    shared.post(left, 1);
    EXPECT_EQ(shared.pair.b.take_async_event(0).type, -1) << "it is unarmed";
  }
}

TEST_P(Srq, LosesItsLastReceiveOfAQueuePairInErrorWithAnEvent) {
  // IBTA 10.2.9.4, 11.6.3.2: no completion tells that the queue pair takes none any more.
  SKIP_IF(lacks_srq(device()));
  Shared shared(GetParam(), 2);
  shared.post(0, 4);
  ASSERT_EQ(shared.pair.b.to_state(shared.receivers[0], IBV_QPS_ERR), 0);
  SKIP_IF(quirk_of(shared.receivers[0].vendor, kNoLastReceiveEvent));
  const AsyncEvent event = shared.pair.b.take_async_event();
  EXPECT_EQ(event.type, IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(event.qp, shared.receivers[0].id);
  EXPECT_EQ(shared.pair.b.take_async_event(0).type, -1);
}

TEST_P(Srq, KeepsItsReceivesWhenAQueuePairFails) {
  SKIP_IF(lacks_srq(device()));
  Shared shared(GetParam(), 2);
  shared.post(0, 4);
  ASSERT_EQ(shared.pair.b.to_state(shared.receivers[0], IBV_QPS_ERR), 0);
  EXPECT_TRUE(shared.pair.b.poll_once(shared.receivers[0].receive_cq, 4).empty());
  for (std::uint64_t i = 0; i < 4; ++i) {
    shared.send_one(1, i);
    expect_receive(shared.next(), i, 16, shared.receivers[1]);
  }
  if (quirk_of(shared.receivers[0].vendor, kNoLastReceiveEvent).empty()) {
    EXPECT_EQ(shared.pair.b.take_async_event().type, IBV_EVENT_QP_LAST_WQE_REACHED);
  }
}

TEST_P(Srq, KeepsItsReceivesWhenAQueuePairIsDestroyed) {
  SKIP_IF(lacks_srq(device()));
  Shared shared(GetParam(), 2);
  shared.post(0, 4);
  ASSERT_EQ(shared.pair.b.call<&Endpoint::destroy_qp>(shared.receivers[0].id), 0);
  for (std::uint64_t i = 0; i < 4; ++i) {
    shared.send_one(1, i);
    expect_receive(shared.next(), i, 16, shared.receivers[1]);
  }
}

TEST_P(Srq, FailsOnlyTheQueuePairWhoseMessageIsTooLong) {
  SKIP_IF(lacks_srq(device()));
  Shared shared(GetParam(), 2);
  shared.post(0, 3);
  expect_posted(
      shared.pair.a.post_send(shared.senders[0], send(9, slice(shared.from, 0, kSlot + 1))));
  expect_error(shared.pair.a.poll_sends(shared.senders[0], 1)[0], 9, IBV_WC_REM_INV_REQ_ERR,
               shared.senders[0]);
  const ibv_wc wc = shared.next();
  expect_error(wc, 0, IBV_WC_LOC_LEN_ERR, shared.receivers[0]);
  EXPECT_TRUE(wait_until([&] { return shared.pair.b.state(shared.receivers[0]) == IBV_QPS_ERR; }));
  shared.send_one(1, 1);
  expect_receive(shared.next(), 1, 16, shared.receivers[1]);
  while (shared.pair.b.take_async_event(0).type != -1) {
  }
}

TEST_P(Srq, FailsOnlyTheQueuePairThatTookABadReceive) {
  SKIP_IF(lacks_srq(device()));
  Shared shared(GetParam(), 2);
  Slice wrong = slice(shared.to, 0, kSlot);
  wrong.lkey = shared.to.lkey ^ 0x80000000u;
  expect_posted(shared.pair.b.post_srq_receive(shared.srq, {receive(7, wrong)}));
  shared.post(8, 1);
  expect_posted(shared.pair.a.post_send(shared.senders[0], send(1, slice(shared.from, 0, 8))));
  expect_error(shared.pair.a.poll_sends(shared.senders[0], 1)[0], 1, IBV_WC_REM_OP_ERR,
               shared.senders[0]);
  expect_error(shared.next(), 7, IBV_WC_LOC_PROT_ERR, shared.receivers[0]);
  shared.send_one(1, 2);
  expect_receive(shared.next(), 8, 16, shared.receivers[1]);
  while (shared.pair.b.take_async_event(0).type != -1) {
  }
}

TEST_P(Srq, IsUsedByAWriteWithImmediate) {
  SKIP_IF(lacks_srq(device()));
  Shared shared(GetParam());
  expect_posted(shared.pair.b.post_srq_receive(shared.srq, {receive(3)}));
  expect_posted(shared.pair.a.post_send(
      shared.senders[0], write(1, slice(shared.from, 0, 32), shared.to, 1024).with_imm(77)));
  expect_wc(shared.pair.a.poll_sends(shared.senders[0], 1)[0], 1, IBV_WC_RDMA_WRITE,
            shared.senders[0]);
  const ibv_wc wc = shared.next();
  expect_wc(wc, 3, IBV_WC_RECV_RDMA_WITH_IMM, shared.receivers[0]);
  EXPECT_EQ(ntohl(wc.imm_data), 77u);
}

TEST_P(Srq, ThatIsFullRefusesAndNamesTheReceive) {
  SKIP_IF(lacks_srq(device()));
  SrqWish wish;
  wish.depth = 8;
  Shared shared(GetParam(), 1, wish);
  const std::uint32_t depth = shared.srq.granted.max_wr;
  std::vector<Receive> list;
  for (std::uint32_t i = 0; i < depth + 2; ++i) list.push_back(receive(i));
  const Posted posted = shared.pair.b.post_srq_receive(shared.srq, list);
  EXPECT_EQ(posted.error, ENOMEM);
  EXPECT_GE(posted.bad, static_cast<std::int32_t>(depth));
  shared.send_one(0, 1, 0);
  shared.next();
  EXPECT_EQ(shared.pair.b.post_srq_receive(shared.srq, {receive(99)}).error, 0);
}

TEST_P(Srq, RefusesMorePiecesThanWereGranted) {
  SKIP_IF(lacks_srq(device()));
  Shared shared(GetParam());
  SliceList many;
  for (std::uint32_t i = 0; i <= shared.srq.granted.max_sge && i < kSliceSlots; ++i) {
    many.add(slice(shared.to, i, 1));
  }
  const Posted posted = shared.pair.b.post_srq_receive(
      shared.srq, {shared.slot(1), receive(2, many), shared.slot(3)});
  EXPECT_EQ(posted.error, EINVAL);
  EXPECT_EQ(posted.bad, 1);
  shared.send_one(0, 5);
  EXPECT_EQ(shared.next().wr_id, 1u);
}

TEST_P(Srq, TakesTheReceivesOfItsQueuePairsAlone) {
  // IBTA 11.4.1.2: a receive posted to such a queue pair itself is an error.
  SKIP_IF(lacks_srq(device()));
  Shared shared(GetParam());
  const Posted posted = shared.pair.b.post_receive(shared.receivers[0], shared.slot(0));
  EXPECT_NE(posted.error, 0);
  EXPECT_EQ(posted.bad, 0);
}

TEST_P(Srq, IsResizedWithReceivesInside) {
  SKIP_IF(lacks_srq(device()));
  SKIP_IF(lacks_resize());
  Shared shared(GetParam());
  shared.post(0, 5);
  ASSERT_EQ(shared.resize(1000), 0);
  EXPECT_GE(shared.pair.b.call<&Endpoint::query_srq>(shared.srq.id).max_wr, 1000u);
  shared.post(5, 30);
  for (std::uint64_t i = 0; i < 35; ++i) {
    shared.send_one(0, i);
    EXPECT_EQ(shared.next().wr_id, i);
  }
}

TEST_P(Srq, ShrinksToWhatIsPostedAndKeepsIt) {
  // man ibv_modify_srq; IBTA 11.2.3.4.
  SKIP_IF(lacks_srq(device()));
  SKIP_IF(lacks_resize());
  SrqWish wish;
  wish.depth = 24;
  Shared shared(GetParam(), 1, wish);
  // Not at the beginning of its ring, nor all before its end.
  const std::uint32_t before = shared.srq.granted.max_wr;
  for (std::uint64_t i = 0; i < before - 3; ++i) {
    shared.post(i, 1);
    shared.send_one(0, i);
    EXPECT_EQ(shared.next().wr_id, i);
  }
  for (const std::uint32_t left : {16u, 5u}) {
    SCOPED_TRACE(left);
    shared.post(100, static_cast<int>(left));
    ASSERT_EQ(shared.resize(left), 0);
    const std::uint32_t granted = shared.pair.b.call<&Endpoint::query_srq>(shared.srq.id).max_wr;
    EXPECT_GE(granted, left);
    EXPECT_LE(granted, before);
    // It holds what it grants.
    shared.post(100 + left, static_cast<int>(granted - left));
    for (std::uint64_t i = 0; i < granted; ++i) {
      const std::uint64_t size = 1 + i % kSlot;
      shared.pair.a.fill(shared.from, 0, size, static_cast<std::uint32_t>(i));
      shared.send_one(0, i, size);
      expect_receive(shared.next(), 100 + i, size, shared.receivers[0]);
      EXPECT_EQ(shared.pair.b.mismatch(shared.to, (100 + i) % 64 * kSlot, size,
                                       static_cast<std::uint32_t>(i)),
                -1);
    }
  }
}

TEST_P(Srq, IsNotShrunkBelowWhatIsPosted) {
  SKIP_IF(lacks_srq(device()));
  SKIP_IF(lacks_resize());
  Shared shared(GetParam());
  const auto granted = [&] {
    return shared.pair.b.call<&Endpoint::query_srq>(shared.srq.id).max_wr;
  };
  const std::uint32_t before = granted();
  shared.post(0, 20);
  shared.send_one(0, 0);
  EXPECT_EQ(shared.next().wr_id, 0u);
  AllowedLog refused("modify_srq");
  for (const std::uint32_t below : {0u, 1u, 18u}) {
    SCOPED_TRACE(below);
    const int answer = shared.resize(below);
    if (answer == 0) {
      EXPECT_GE(granted(), 19u) << "more than was asked for, as much as is posted";
      EXPECT_EQ(below, 18u) << "a device may round up; not that far";
    } else {
      EXPECT_EQ(answer, EINVAL);
      EXPECT_EQ(granted(), before);
    }
  }
  const std::uint64_t more = std::min(granted() - 19, 10u);
  shared.post(20, static_cast<int>(more));
  for (std::uint64_t i = 1; i < 20 + more; ++i) {
    shared.send_one(0, i);
    expect_receive(shared.next(), i, 16, shared.receivers[0]);
  }
  EXPECT_EQ(shared.resize(18), 0) << "it is empty now";
}

TEST_P(Srq, ServesSendersOfSeveralProcesses) {
  SKIP_IF(lacks_srq(device()));
  Shared shared(GetParam());
  Side third(std::map<std::string, std::string>{{kDeviceVariable, device()}});
  QpWish receiver;
  receiver.srq = shared.srq.id;
  receiver.receive_cq = shared.receivers[0].receive_cq;
  const QpInfo theirs = third.create_qp();
  const QpInfo ours = shared.pair.b.create_qp(receiver);
  third.connect(theirs, ours);
  shared.pair.b.connect(ours, theirs);
  const RegionInfo from = third.allocate(memory(), 64);
  shared.post(0, 40);
  for (std::uint64_t i = 0; i < 20; ++i) {
    expect_posted(third.post_send(theirs, send(i, slice(from, 0, 8)).unsignaled()));
    expect_posted(shared.pair.a.post_send(shared.senders[0],
                                          send(i, slice(shared.from, 0, 24)).unsignaled()));
  }
  const auto got = shared.pair.b.poll_receives(ours, 40);
  std::uint32_t of_third = 0;
  std::vector<bool> used(40);
  for (const ibv_wc& wc : got) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_FALSE(used[wc.wr_id]);
    used[wc.wr_id] = true;
    of_third += wc.qp_num == ours.qpn;
    EXPECT_EQ(wc.byte_len, wc.qp_num == ours.qpn ? 8u : 24u);
  }
  EXPECT_EQ(of_third, 20u);
}

class SrqObject : public OnDevice {};
RUN_ON_EVERY_DEVICE(SrqObject);

TEST_P(SrqObject, GrantsAtLeastWhatWasAskedForAndSaysSo) {
  SKIP_IF(lacks_srq(GetParam()));
  ibv_srq_init_attr init{};
  int mine = 0;
  init.srq_context = &mine;
  init.attr = {10, 2, 0};
  const SrqHandle made(ibv_create_srq(pd(), &init));
  ASSERT_NE(made, nullptr);
  EXPECT_GE(init.attr.max_wr, 10u);
  EXPECT_GE(init.attr.max_sge, 2u);
  EXPECT_EQ(made->srq_context, &mine);
  EXPECT_EQ(made->pd, pd());
  EXPECT_EQ(made->context, context());
  ibv_srq_attr told{};
  ASSERT_EQ(ibv_query_srq(made.get(), &told), 0);
  EXPECT_EQ(told.max_wr, init.attr.max_wr);
  EXPECT_EQ(told.max_sge, init.attr.max_sge);
  EXPECT_EQ(told.srq_limit, 0u);
}

TEST_P(SrqObject, OfAllThatTheDeviceHasIsMadeAndOfMoreRefused) {
  SKIP_IF(lacks_srq(GetParam()));
  const auto most_wr = static_cast<std::uint32_t>(attr().max_srq_wr);
  const auto most_sge = static_cast<std::uint32_t>(attr().max_srq_sge);
  ibv_srq_init_attr init{};
  init.attr = {most_wr, 1, 0};
  EXPECT_NE(SrqHandle(ibv_create_srq(pd(), &init)), nullptr) << std::strerror(errno);
  init.attr = {1, most_sge, 0};
  EXPECT_NE(SrqHandle(ibv_create_srq(pd(), &init)), nullptr) << std::strerror(errno);
  expect_complaints();
  init.attr = {most_wr + 1, 1, 0};
  EXPECT_EQ(ibv_create_srq(pd(), &init), nullptr);
  init.attr = {1, most_sge + 1, 0};
  EXPECT_EQ(ibv_create_srq(pd(), &init), nullptr);
}

TEST_P(SrqObject, IsNotDestroyedBeforeItsQueuePairs) {
  SKIP_IF(lacks_srq(GetParam()));
  ibv_srq* const shared = srq();
  ibv_qp* const user = qp(IBV_QPT_RC, cq(), shared);
  ASSERT_NE(user, nullptr);
  EXPECT_EQ(user->srq, shared);
  expect_complaints();
  EXPECT_EQ(ibv_destroy_srq(shared), EBUSY);
}

TEST_P(SrqObject, WithALimitBeyondItsSizeIsRefusedAndStaysAsItWas) {
  SKIP_IF(lacks_srq(GetParam()));
  ibv_srq* const shared = srq(8);
  ibv_srq_attr before{}, after{};
  ASSERT_EQ(ibv_query_srq(shared, &before), 0);
  ibv_srq_attr wrong{};
  wrong.srq_limit = before.max_wr + 1;
  expect_complaints();
  EXPECT_NE(ibv_modify_srq(shared, &wrong, IBV_SRQ_LIMIT), 0);
  ASSERT_EQ(ibv_query_srq(shared, &after), 0);
  EXPECT_EQ(after.srq_limit, before.srq_limit);
  EXPECT_EQ(after.max_wr, before.max_wr);
}

TEST_P(SrqObject, ModifiedByAnEmptyMaskStaysAsItWas) {
  SKIP_IF(lacks_srq(GetParam()));
  ibv_srq* const shared = srq(8);
  ibv_srq_attr attr{};
  attr.max_wr = attr.srq_limit = 1;
  EXPECT_EQ(ibv_modify_srq(shared, &attr, 0), 0);
  ASSERT_EQ(ibv_query_srq(shared, &attr), 0);
  EXPECT_EQ(attr.srq_limit, 0u);
  EXPECT_GE(attr.max_wr, 8u);
}

TEST_P(SrqObject, MadeByTheExtendedVerbIsTheSame) {
  SKIP_IF(lacks_srq(GetParam()));
  ibv_srq_init_attr_ex init{};
  init.attr = {10, 1, 0};
  init.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  init.srq_type = IBV_SRQT_BASIC;
  init.pd = pd();
  const SrqHandle made(ibv_create_srq_ex(context(), &init));
  ASSERT_NE(made, nullptr) << std::strerror(errno);
  std::uint32_t number = 0;
  expect_complaints();
  EXPECT_NE(ibv_get_srq_num(made.get(), &number), 0) << "only XRC ones have numbers";
}

TEST_P(SrqObject, OfTagMatchingIsMadeOrRefused) {
  ibv_srq_init_attr_ex init{};
  init.attr = {10, 1, 0};
  init.comp_mask =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
  init.srq_type = IBV_SRQT_TM;
  init.pd = pd();
  init.cq = cq();
  init.tm_cap = {4, 4};
  errno = 0;
  const SrqHandle made(ibv_create_srq_ex(context(), &init));
  if (!made) SKIP_IF(unless_unsupported("tag matching queue", errno));
  ibv_ops_wr op{};
  ibv_ops_wr* bad = nullptr;
  op.opcode = IBV_WR_TAG_SYNC;
  EXPECT_EQ(ibv_post_srq_ops(made.get(), &op, &bad), 0);
}

TEST_P(SrqObject, OfAnOrdinaryKindTakesNoTagOperations) {
  SKIP_IF(lacks_srq(GetParam()));
  ibv_ops_wr op{};
  ibv_ops_wr* bad = nullptr;
  op.opcode = IBV_WR_TAG_SYNC;
  expect_complaints();
  EXPECT_NE(ibv_post_srq_ops(srq(), &op, &bad), 0);
  EXPECT_EQ(bad, &op);
}

}  // namespace
}  // namespace verbatim::harness
