// SPDX-License-Identifier: BSD-2-Clause
//
// UD over shared memory: what is more than any device promises (tests/conformance). A datagram that
// finds a receive posted arrives, however many come at once and whatever the receiver is doing.
#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "tests/shm/datagram_group.hpp"
#include "tests/support/deadline.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

constexpr std::uint32_t kPlaces = 1 << 12;  ///< numbers of a block, which one process has

class Datagram : public ::testing::TestWithParam<Setting> {
 protected:
  static PairWish wish(std::uint32_t depth) {
    PairWish wish;
    wish.a.type = wish.b.type = IBV_QPT_UD;
    wish.a.receive_depth = wish.b.receive_depth = depth;
    wish.a.send_depth = wish.b.send_depth = depth;
    wish.a.cq_depth = wish.b.cq_depth = static_cast<std::int32_t>(2 * depth);
    return wish;
  }
  void start(std::uint32_t depth = 64) {
    pair = std::make_unique<Pair>(GetParam(), wish(depth));
    from = pair->a.allocate(GetParam().memory, 8_MiB);
    to = pair->b.allocate(GetParam().memory, 8_MiB);
    ah = pair->a.call<&Endpoint::create_ah>(pair->qb, 0);
  }
  void post(std::uint64_t wr_id, std::uint64_t offset, std::uint64_t size) {
    expect_posted(pair->b.post_receive(pair->qb, {wr_id, slice(to, offset, size)}));
  }
  Request to_b(std::uint64_t wr_id, std::uint64_t offset, std::uint64_t size) {
    return datagram(wr_id, slice(from, offset, size), ah, pair->qb.qpn, Link{}.qkey);
  }
  void send_one(const Request& request) {
    expect_posted(pair->a.post_send(pair->qa, request));
    expect_wc(pair->a.poll_sends(pair->qa, 1)[0], request.wr_id, IBV_WC_SEND, pair->qa);
  }
  /// An address handle to b with the fields of `wish`.
  std::int32_t way_like(const ibv_ah_attr& wish) {
    return pair->a.call<&Endpoint::create_ah_like>(pair->qb, wish);
  }
  /// The routing header that lies before the message at `to`.
  ibv_grh header_that_came() {
    ibv_grh grh;
    const std::vector<std::uint8_t> bytes = pair->b.peek(to, 0, sizeof grh);
    std::memcpy(&grh, bytes.data(), sizeof grh);
    return grh;
  }
  /// A process gives its low numbers in turn while few are in use: high ones say that many are, by
  /// the sender's ways to what is gone.
  void expect_few_ways_left() {
    QpWish probe_wish = wish(4).a;
    probe_wish.send_cq = probe_wish.receive_cq = pair->qa.send_cq;
    std::uint32_t highest = 0;
    EXPECT_TRUE(wait_until([&] {
      highest = 0;
      for (int i = 0; i < 200; ++i) {
        const QpInfo probe = pair->a.create_qp(probe_wish);
        EXPECT_EQ(pair->a.call<&Endpoint::destroy_qp>(probe.id), 0);
        highest = std::max(highest, probe.qpn % kPlaces);
      }
      return highest < 200;
    })) << highest;
  }

  std::unique_ptr<Pair> pair;
  RegionInfo from, to;
  std::int32_t ah = -1;
};
RUN_OVER_SETTINGS(Datagram, each_way_and_loopback());

class DatagramTwoEnds : public Datagram {};
RUN_OVER_SETTINGS(DatagramTwoEnds, each_way());

TEST_P(Datagram, ArrivesWholeBehindItsHeaderAtEverySize) {
  start();
  for (const std::uint64_t size : {0, 1, 8, 16, 17, 55, 56, 57, 220, 1024, 4095, 4096}) {
    SCOPED_TRACE(size);
    pair->a.fill(from, 3, size, static_cast<std::uint32_t>(size));
    pair->b.set(to, 0, size + 200, 0xEE);
    post(7, 5, size + kHeader);
    send_one(to_b(size, 3, size));
    const ibv_wc wc = pair->b.poll_receives(pair->qb, 1)[0];
    expect_wc(wc, 7, IBV_WC_RECV, pair->qb);
    EXPECT_EQ(wc.byte_len, size + kHeader);
    EXPECT_EQ(wc.src_qp, pair->qa.qpn);
    EXPECT_EQ(pair->b.mismatch(to, 5 + kHeader, size, static_cast<std::uint32_t>(size)), -1);
    expect_untouched(pair->b, to, 5 + kHeader + size, 64, 0xEE);
  }
}

TEST_P(Datagram, BringsItsServiceLevelWithEverySizeOfMessage) {
  start();
  ibv_ah_attr wish{};
  wish.sl = 5;
  const std::int32_t usual = ah, other = way_like(wish);
  for (const std::uint64_t size : {0, 1, 31, 32, 33, 40, 55, 57, 4096}) {
    for (const std::int32_t way : {other, usual}) {
      SCOPED_TRACE(testing::Message() << size << (way == usual ? ", level 0" : ", level 5"));
      pair->a.fill(from, 3, size, static_cast<std::uint32_t>(size));
      post(7, 0, size + kHeader);
      ah = way;
      send_one(to_b(size, 3, size));
      const ibv_wc wc = pair->b.poll_receives(pair->qb, 1)[0];
      EXPECT_EQ(wc.sl, way == usual ? 0 : 5);
      EXPECT_EQ(wc.byte_len, size + kHeader);
      EXPECT_EQ(wc.wc_flags & IBV_WC_GRH, 0u);
      EXPECT_EQ(pair->b.mismatch(to, kHeader, size, static_cast<std::uint32_t>(size)), -1);
    }
  }
}

TEST_P(Datagram, BringsItsRouteWithEverySizeOfMessage) {
  start();
  ibv_ah_attr wish{};
  wish.sl = 11;
  wish.is_global = 1;
  wish.grh.flow_label = 0xfffedcb;  // 20 bits of it count
  wish.grh.traffic_class = 0xa5;
  wish.grh.hop_limit = 255;
  const std::int32_t other = way_like(wish);
  wish = {};
  wish.is_global = 1;
  wish.grh.hop_limit = 64;
  const std::int32_t usual = way_like(wish);
  for (const std::uint64_t size : {0, 1, 31, 32, 33, 40, 41, 56, 57, 4096}) {
    for (const std::int32_t way : {other, usual}) {
      SCOPED_TRACE(testing::Message() << size << (way == usual ? ", usual" : ", other"));
      pair->a.fill(from, 3, size, static_cast<std::uint32_t>(size));
      post(7, 0, size + kHeader);
      ah = way;
      send_one(to_b(size, 3, size));
      const ibv_wc wc = pair->b.poll_receives(pair->qb, 1)[0];
      EXPECT_EQ(wc.sl, way == usual ? 0 : 11);
      EXPECT_NE(wc.wc_flags & IBV_WC_GRH, 0u);
      const ibv_grh grh = header_that_came();
      EXPECT_EQ(ntohl(grh.version_tclass_flow),
                way == usual ? 6u << 28 : 6u << 28 | 0xa5u << 20 | 0xfedcbu);
      EXPECT_EQ(grh.hop_limit, way == usual ? 64 : 255);
      EXPECT_EQ(std::memcmp(&grh.sgid, &pair->qa.gid, sizeof grh.sgid), 0);
      EXPECT_EQ(std::memcmp(&grh.dgid, &pair->qb.gid, sizeof grh.dgid), 0);
      EXPECT_EQ(pair->b.mismatch(to, kHeader, size, static_cast<std::uint32_t>(size)), -1);
    }
  }
}

TEST_P(DatagramTwoEnds, ABurstToPostedReceivesArrivesWhileNobodyPolls) {
  constexpr std::uint64_t kCount = 512, kSize = 4096;
  start(kCount);
  for (std::uint64_t i = 0; i < kCount; ++i) post(i, i * (kSize + kHeader), kSize + kHeader);
  pair->a.fill(from, 0, kCount * kSize, 3);
  std::vector<Request> burst;
  for (std::uint64_t i = 0; i < kCount; ++i) burst.push_back(to_b(i, i * kSize, kSize));
  expect_posted(pair->a.post_send(pair->qa, burst));
  EXPECT_EQ(pair->a.poll_sends(pair->qa, kCount).size(), kCount);
  const auto done = pair->b.poll_receives(pair->qb, kCount);
  for (std::uint64_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(done[i].wr_id, i);
    ASSERT_EQ(pair->b.mismatch(to, i * (kSize + kHeader) + kHeader, 0, 3), -1);
  }
  EXPECT_EQ(pair->b.peek(to, kHeader, 4096), pair->a.peek(from, 0, 4096));
  EXPECT_EQ(pair->b.peek(to, 511 * (kSize + kHeader) + kHeader, 4096),
            pair->a.peek(from, 511 * kSize, 4096));
}

TEST_P(DatagramTwoEnds, WithoutAReceiveIsLostAndItsSenderContent) {
  start();
  post(1, 0, 100);
  send_one(to_b(1, 0, 8));  // they have met
  EXPECT_EQ(pair->b.poll_receives(pair->qb, 1).size(), 1u);
  for (std::uint64_t i = 2; i < 50; ++i) send_one(to_b(i, 0, i * 80));
  post(9, 0, 5000);
  send_one(to_b(50, 0, 77));
  EXPECT_EQ(pair->b.poll_receives(pair->qb, 1)[0].byte_len, 77 + kHeader);
  EXPECT_TRUE(pair->b.poll_once(pair->qb.receive_cq, 4).empty());
}

TEST_P(DatagramTwoEnds, ReachesAQueuePairThatWasResetAndCameBack) {
  start();
  for (std::uint64_t round = 0; round < 3; ++round) {
    post(round, 0, 100);
    send_one(to_b(round, 0, 8));
    EXPECT_EQ(pair->b.poll_receives(pair->qb, 1)[0].wr_id, round);
    ASSERT_EQ(pair->b.to_state(pair->qb, IBV_QPS_RESET), 0);
    send_one(to_b(99, 0, 8));  // nobody there
    pair->b.connect(pair->qb, pair->qa);
  }
}

TEST_P(DatagramTwoEnds, IsTakenAlsoAfterItsSenderWasDestroyed) {
  start();
  for (std::uint64_t i = 0; i < 8; ++i) post(i, i * 5000, 5000);
  pair->a.fill(from, 0, 4096, 9);
  for (std::uint64_t i = 0; i < 8; ++i) send_one(to_b(i, 0, i < 4 ? 8 : 4096));
  ASSERT_EQ(pair->a.call<&Endpoint::destroy_qp>(pair->qa.id), 0);
  EXPECT_EQ(pair->b.poll_receives(pair->qb, 8)[7].byte_len, 4096 + kHeader);
  EXPECT_EQ(pair->b.mismatch(to, 7 * 5000 + kHeader, 4096, 9), -1);
}

TEST_P(DatagramTwoEnds, ManySendersReachOneReceiver) {
  constexpr std::uint32_t kSenders = 20;
  constexpr std::uint64_t kEach = 50;
  start(kSenders * kEach);
  std::vector<QpInfo> senders;
  for (std::uint32_t i = 0; i < kSenders; ++i) {
    senders.push_back(pair->a.create_qp(wish(64).a));
    pair->a.connect(senders[i], pair->qb);
  }
  for (std::uint64_t i = 0; i < kSenders * kEach; ++i) post(i, i * 128, 128);
  for (std::uint64_t i = 0; i < kEach; ++i) {
    for (const QpInfo& sender : senders) {
      expect_posted(pair->a.post_send(sender, to_b(i, 0, i % 60)));
      pair->a.poll_sends(sender, 1);
    }
  }
  std::map<std::uint32_t, std::uint64_t> came;
  for (const ibv_wc& wc : pair->b.poll_receives(pair->qb, kSenders * kEach))
    EXPECT_EQ(wc.byte_len, kHeader + came[wc.src_qp]++ % 60) << "in each sender's order";
  for (const QpInfo& sender : senders) EXPECT_EQ(came[sender.qpn], kEach);
}

TEST_P(DatagramTwoEnds, ToMemoryOfAnotherDomainEndsTheReceiver) {
  start();
  const RegionInfo foreign = pair->b.call<&Endpoint::register_foreign>(to.id, kAllAccess);
  post(1, 0, 100);
  send_one(to_b(1, 0, 8));
  EXPECT_EQ(pair->b.poll_receives(pair->qb, 1).size(), 1u);
  expect_posted(pair->b.post_receive(pair->qb, {2, slice(foreign, 0, 100)}));
  send_one(to_b(2, 0, 8));
  expect_error(pair->b.poll_receives(pair->qb, 1)[0], 2, IBV_WC_LOC_PROT_ERR, pair->qb);
  EXPECT_EQ(pair->b.state(pair->qb), IBV_QPS_ERR);
  EXPECT_EQ(pair->a.state(pair->qa), IBV_QPS_RTS) << "its sender does not notice";
}

TEST_P(DatagramTwoEnds, LeavesNothingBehindWhenSendersComeAndGo) {
  start();
  QpWish sender_wish = wish(4).a;
  for (std::uint64_t i = 0; i < 50; ++i) {
    const QpInfo sender = pair->a.create_qp(sender_wish);
    pair->a.connect(sender, pair->qb);
    post(i, 0, 100);
    expect_posted(pair->a.post_send(sender, to_b(i, 0, 8)));
    EXPECT_EQ(pair->a.poll_sends(sender, 1).size(), 1u);
    const ibv_wc wc = pair->b.poll_receives(pair->qb, 1)[0];
    EXPECT_EQ(wc.wr_id, i);
    EXPECT_EQ(wc.src_qp, sender.qpn);
    ASSERT_EQ(pair->a.call<&Endpoint::destroy_qp>(sender.id), 0);
  }
}

TEST_P(DatagramTwoEnds, LeavesNothingBehindWhenReceiversComeAndGo) {
  start();
  const QpWish receiver_wish = wish(4).b;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const QpInfo receiver = pair->b.create_qp(receiver_wish);
    pair->b.connect(receiver, pair->qa);
    expect_posted(pair->b.post_receive(receiver, {i, slice(to, 0, 100)}));
    const std::int32_t way = pair->a.call<&Endpoint::create_ah>(receiver, 0);
    send_one(datagram(i, slice(from, 0, 8), way, receiver.qpn, Link{}.qkey));
    EXPECT_EQ(pair->b.poll_receives(receiver, 1)[0].wr_id, i);
    ASSERT_EQ(pair->b.call<&Endpoint::destroy_qp>(receiver.id), 0);
  }
  expect_few_ways_left();
}

TEST_P(DatagramTwoEnds, KeepsNoWaysToNumbersThatNobodyHas) {
  start();
  post(1, 0, 100);
  send_one(to_b(1, 0, 8));  // they have met
  EXPECT_EQ(pair->b.poll_receives(pair->qb, 1).size(), 1u);
  for (const std::uint32_t owner : {pair->qa.qpn, pair->qb.qpn})
    for (std::uint32_t i = 1; i <= 300; ++i)
      send_one(
          datagram(i, slice(from, 0, 8), ah, (owner & ~(kPlaces - 1)) + 3000 + i, Link{}.qkey));
  expect_few_ways_left();
  post(2, 0, 100);
  send_one(to_b(2, 0, 8));
  EXPECT_EQ(pair->b.poll_receives(pair->qb, 1)[0].wr_id, 2u) << "the way to who is there is kept";
}

constexpr std::uint16_t kNoLid = 0;

TEST_P(DatagramTwoEnds, ToAGroupReachesAllMembersButTheSender) {
  start();
  const QpInfo second = pair->b.create_qp(wish(64).b);
  pair->b.connect(second, pair->qa);
  const QpInfo other = pair->b.create_qp(wish(64).b);
  pair->b.connect(other, pair->qa);
  ASSERT_EQ(pair->a.call<&Endpoint::attach>(pair->qa.id, group(1), kNoLid), 0);
  ASSERT_EQ(pair->b.call<&Endpoint::attach>(pair->qb.id, group(1), kNoLid), 0);
  ASSERT_EQ(pair->b.call<&Endpoint::attach>(second.id, group(1), kNoLid), 0);
  ASSERT_EQ(pair->b.call<&Endpoint::attach>(other.id, group(2), kNoLid), 0);
  expect_posted(pair->a.post_receive(pair->qa, {1, slice(from, 1_MiB, 100)}));
  expect_posted(pair->b.post_receive(pair->qb, {2, slice(to, 0, 100)}));
  expect_posted(pair->b.post_receive(second, {3, slice(to, 1000, 100)}));
  expect_posted(pair->b.post_receive(other, {4, slice(to, 2000, 100)}));
  const std::int32_t to_group = pair->a.call<&Endpoint::create_multicast_ah>(group(1), kNoLid);
  pair->a.fill(from, 0, 60, 8);
  send_one(datagram(9, slice(from, 0, 60), to_group, 0xffffff, Link{}.qkey));
  EXPECT_EQ(pair->b.poll_receives(pair->qb, 1)[0].src_qp, pair->qa.qpn);
  EXPECT_NE(pair->b.poll_receives(second, 1)[0].wc_flags & IBV_WC_GRH, 0u);
  EXPECT_EQ(header_that_came().hop_limit, 1) << "as its address handle says";
  EXPECT_EQ(pair->b.mismatch(to, kHeader, 60, 8), -1);
  EXPECT_EQ(pair->b.mismatch(to, 1000 + kHeader, 60, 8), -1);
  EXPECT_TRUE(pair->b.poll_once(other.receive_cq, 1).empty());
  EXPECT_TRUE(pair->a.poll_once(pair->qa.receive_cq, 1).empty());

  ASSERT_EQ(pair->b.call<&Endpoint::detach>(second.id, group(1), kNoLid), 0);
  AllowedLog not_a_member("is not in this group");
  EXPECT_EQ(pair->b.call<&Endpoint::detach>(second.id, group(1), kNoLid), EINVAL);
  expect_posted(pair->b.post_receive(pair->qb, {5, slice(to, 0, 100)}));
  expect_posted(pair->b.post_receive(second, {6, slice(to, 1000, 100)}));
  send_one(datagram(9, slice(from, 0, 60), to_group, 0xffffff, Link{}.qkey));
  EXPECT_EQ(pair->b.poll_receives(pair->qb, 1)[0].wr_id, 5u);
  EXPECT_TRUE(pair->b.poll_once(second.receive_cq, 1).empty());
  EXPECT_EQ(pair->a.call<&Endpoint::detach>(pair->qa.id, group(1), kNoLid), 0);
  EXPECT_EQ(pair->b.call<&Endpoint::detach>(pair->qb.id, group(1), kNoLid), 0);
  EXPECT_EQ(pair->b.call<&Endpoint::detach>(other.id, group(2), kNoLid), 0);
}

TEST_P(DatagramTwoEnds, AGroupIsJoinedOnceAndLeftOnce) {
  start();
  EXPECT_EQ(pair->b.call<&Endpoint::attach>(pair->qb.id, group(7), kNoLid), 0);
  EXPECT_EQ(pair->b.call<&Endpoint::attach>(pair->qb.id, group(7), kNoLid), 0);
  AllowedLog still_a_member("ibv_destroy_qp: still used");
  EXPECT_EQ(pair->b.call<&Endpoint::destroy_qp>(pair->qb.id), EBUSY);
  EXPECT_EQ(pair->b.call<&Endpoint::detach>(pair->qb.id, group(7), kNoLid), 0);
  EXPECT_EQ(pair->b.call<&Endpoint::destroy_qp>(pair->qb.id), 0);
}

}  // namespace
}  // namespace verbatim::harness
