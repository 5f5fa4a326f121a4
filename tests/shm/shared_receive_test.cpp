// SPDX-License-Identifier: BSD-2-Clause
//
// When a SEND to a shared receive queue completes over shared memory: when its sender sees a
// receive beyond those that its own untaken messages will use up, whoever takes it in the end
// (providers/shm/shared_receive.hpp). What any device promises of shared queues is said in
// tests/conformance.
#include "tests/support/expect.hpp"

namespace verbatim::harness {
namespace {

/// `queues` queue pairs of `b` share its receives; each is connected to one of `a`.
class SharedReceive : public ::testing::TestWithParam<Setting> {
 protected:
  struct Link {
    QpInfo a, b;
  };
  void share(std::uint32_t depth, std::uint32_t queues) {
    PairWish nothing;
    pair = std::make_unique<Pair>(GetParam(), nothing);
    SrqWish wish;
    wish.depth = depth;
    srq = pair->b.create_srq(wish);
    QpWish sharing;
    sharing.srq = srq.id;
    const QpWish plain;
    for (std::uint32_t i = 0; i < queues; ++i) {
      if (i != 0) sharing.receive_cq = links[0].b.receive_cq;
      const auto ends = pair->add_qps(plain, sharing);
      links.push_back({ends.first, ends.second});
    }
    from = pair->a.allocate(GetParam().memory, 8_MiB);
    to = pair->b.allocate(GetParam().memory, 8_MiB);
  }
  void post_receives(std::uint64_t first, std::uint64_t count, std::uint64_t size) {
    std::vector<Receive> receives;
    for (std::uint64_t i = first; i < first + count; ++i)
      receives.push_back({i, slice(to, i * size, size)});
    expect_posted(pair->b.post_srq_receive(srq, receives));
  }

  std::unique_ptr<Pair> pair;
  SrqInfo srq;
  std::vector<Link> links;
  RegionInfo from, to;
};
RUN_OVER_SETTINGS(SharedReceive, each_way());

TEST_P(SharedReceive, OneSenderIsHeldBackWhenItHasUsedUpWhatIsPosted) {
  share(16, 1);
  const QpInfo& qa = links[0].a;
  post_receives(0, 3, 64);
  for (std::uint64_t i = 0; i < 5; ++i)
    expect_posted(pair->a.post_send(qa, send(i, slice(from, i * 8, 8))));
  EXPECT_EQ(pair->a.poll_sends(qa, 3).size(), 3u);
  EXPECT_TRUE(pair->a.poll_once(qa.send_cq, 5).empty()) << "two have no receive yet";
  EXPECT_EQ(pair->b.poll_receives(links[0].b, 3).size(), 3u);
  EXPECT_TRUE(pair->a.poll_once(qa.send_cq, 5).empty()) << "that they were polled posts none";
  post_receives(3, 2, 64);
  EXPECT_EQ(pair->a.poll_sends(qa, 2).size(), 2u);
  EXPECT_EQ(pair->b.poll_receives(links[0].b, 2).size(), 2u);
}

TEST_P(SharedReceive, WhatTwoSendersSendToTheLastReceiveWaitsForTheNext) {
  share(16, 2);
  post_receives(0, 1, 64);
  for (const Link& link : links) {
    pair->a.fill(from, 0, 8, link.a.qpn);
    expect_posted(pair->a.post_send(link.a, send(1, slice(from, 0, 8))));
    EXPECT_EQ(pair->a.poll_sends(link.a, 1).size(), 1u);
  }
  const ibv_wc first = pair->b.poll_receives(links[0].b, 1)[0];
  EXPECT_EQ(first.wr_id, 0u);
  EXPECT_TRUE(pair->b.poll_once(links[0].b.receive_cq, 4).empty());
  post_receives(1, 1, 64);
  const ibv_wc second = pair->b.poll_receives(links[0].b, 1)[0];
  EXPECT_EQ(second.wr_id, 1u);
  EXPECT_NE(first.qp_num, second.qp_num);
  EXPECT_EQ(pair->b.mismatch(to, 64, 8, second.src_qp), -1) << "each brought its own bytes";
}

TEST_P(SharedReceive, APostWakesWhoSleepsOnAMessageThatFoundNone) {
  pair = std::make_unique<Pair>(GetParam(), PairWish{});
  srq = pair->b.create_srq({});
  QpWish sharing;
  sharing.srq = srq.id;
  sharing.with_channel = 1;
  for (int i = 0; i < 2; ++i) {
    const auto ends = pair->add_qps(QpWish{}, sharing);
    links.push_back({ends.first, ends.second});
    sharing.with_channel = 0;
    sharing.receive_cq = ends.second.receive_cq;
  }
  from = pair->a.allocate(GetParam().memory, 4_KiB);
  to = pair->b.allocate(GetParam().memory, 4_KiB);
  post_receives(0, 1, 64);
  for (const Link& link : links) {
    expect_posted(pair->a.post_send(link.a, send(1, slice(from, 0, 8))));
    EXPECT_EQ(pair->a.poll_sends(link.a, 1).size(), 1u);
  }
  const std::int32_t cq = links[0].b.receive_cq;
  EXPECT_EQ(pair->b.poll_receives(links[0].b, 1).size(), 1u);
  ASSERT_EQ(pair->b.call<&Endpoint::arm>(cq, 0), 0);
  EXPECT_TRUE(pair->b.poll_once(cq, 1).empty());
  EXPECT_FALSE(pair->b.call<&Endpoint::event_pending>(cq)) << "nothing can be completed";
  post_receives(1, 1, 64);
  EXPECT_EQ(pair->b.call<&Endpoint::take_event>(cq, kDefaultWaitMs), cq);
  EXPECT_EQ(pair->b.poll_receives(links[0].b, 1).size(), 1u);
}

TEST_P(SharedReceive, LargeMessagesAreTakenWhileNobodyPolls) {
  constexpr std::uint64_t kSize = 1_MiB;
  share(16, 1);
  const Link& link = links[0];
  // Several times, since who is asked for the next stream ring, and when, is a matter of moments.
  for (std::uint32_t round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    post_receives(0, 4, kSize);
    pair->a.fill(from, 0, 4 * kSize, round);
    for (std::uint64_t i = 0; i < 4; ++i)
      expect_posted(pair->a.post_send(link.a, send(i, slice(from, i * kSize, kSize))));
    EXPECT_EQ(pair->a.poll_sends(link.a, 4).size(), 4u) << "their receives were posted";
    const auto done = pair->b.poll_receives(link.b, 4);
    for (const ibv_wc& wc : done) EXPECT_EQ(wc.byte_len, kSize);
    EXPECT_EQ(pair->b.mismatch(to, 0, 4 * kSize, round), -1) << "each in the receive of its turn";
  }
}

TEST_P(SharedReceive, GrowsWithReceivesAndMessagesInIt) {
  share(4, 1);
  const Link& link = links[0];
  post_receives(0, 4, 64);
  for (std::uint64_t i = 0; i < 2; ++i)
    expect_posted(pair->a.post_send(link.a, send(i, slice(from, 0, 8))));
  EXPECT_EQ(pair->a.poll_sends(link.a, 2).size(), 2u);
  ASSERT_EQ(pair->b.call<&Endpoint::modify_srq>(srq.id, ibv_srq_attr{100, 0, 0}, IBV_SRQ_MAX_WR),
            0);
  EXPECT_EQ(pair->b.call<&Endpoint::query_srq>(srq.id).max_wr, 100u);
  post_receives(4, 96, 64);
  for (std::uint64_t i = 2; i < 100; ++i) {
    expect_posted(pair->a.post_send(link.a, send(i, slice(from, 0, 8))));
    EXPECT_EQ(pair->b.poll_receives(link.b, 1)[0].wr_id, i - 2);
    EXPECT_EQ(pair->a.poll_sends(link.a, 1).size(), 1u);
  }
  EXPECT_EQ(pair->b.poll_receives(link.b, 2)[1].wr_id, 99u);
}

TEST_P(SharedReceive, ManySendersLoseNothing) {
  constexpr std::uint32_t kQueues = 8;
  constexpr std::uint64_t kEach = 500;
  share(64, kQueues);
  std::uint64_t posted = 0, got = 0;
  std::vector<std::uint64_t> sent(kQueues, 0), completed(kQueues, 0);
  while (got < kQueues * kEach) {
    const std::uint64_t batch = 64 - (posted - got);
    std::vector<Receive> receives;
    for (std::uint64_t i = 0; i < batch; ++i, ++posted)
      receives.push_back({posted, slice(to, posted % 64 * 256, 256)});
    expect_posted(pair->b.post_srq_receive(srq, receives));
    for (std::uint32_t q = 0; q < kQueues; ++q) {
      for (; sent[q] < kEach && sent[q] - completed[q] < 16; ++sent[q])
        expect_posted(
            pair->a.post_send(links[q].a, send(sent[q], slice(from, 0, (sent[q] * 7 + q) % 200))));
      completed[q] += pair->a.poll_once(links[q].a.send_cq, 16).size();
    }
    for (const ibv_wc& wc : pair->b.poll_once(links[0].b.receive_cq, 64)) {
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      ASSERT_EQ(wc.wr_id, got) << "receives are used up in the order of posting";
      ++got;
    }
  }
  for (std::uint32_t q = 0; q < kQueues; ++q) EXPECT_EQ(sent[q], kEach);
}

}  // namespace
}  // namespace verbatim::harness
