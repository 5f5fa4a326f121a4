// SPDX-License-Identifier: BSD-2-Clause
//
// Many of everything: queue pairs on one queue, contexts in one process, processes on one host.
#include <algorithm>
#include <map>
#include <set>

#include "tests/shm/all_to_all.hpp"
#include "tests/shm/many_qps.hpp"
#include "tests/support/condition.hpp"
#include "tests/support/expect.hpp"

namespace verbatim::harness {
namespace {

class RcMany : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcMany, each_way());

TEST_P(RcMany, QueuePairsShareTheirQueuesAndCompletionsNameThem) {
  constexpr std::uint32_t kQps = 100;
  Pair pair(GetParam());
  QpWish wish_a;
  QpWish wish_b;
  wish_a.send_depth = wish_a.receive_depth = wish_b.send_depth = wish_b.receive_depth = 8;
  wish_a.send_cq = wish_a.receive_cq = pair.a.call<&Endpoint::create_cq>(2048, 0);
  wish_b.send_cq = wish_b.receive_cq = pair.b.call<&Endpoint::create_cq>(2048, 0);
  const RegionInfo local = pair.a.allocate(GetParam().memory, kQps * 256);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, kQps * 256);
  std::vector<std::pair<QpInfo, QpInfo>> qps;
  for (std::uint32_t i = 0; i < kQps; ++i) qps.push_back(pair.add_qps(wish_a, wish_b));
  pair.a.fill(local, 0, kQps * 256, 5);

  // In three rounds, the last over the half that is left after the others were destroyed.
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    std::map<std::uint32_t, std::size_t> sender_of;
    std::map<std::uint32_t, std::size_t> receiver_of;
    for (std::size_t i = 0; i < qps.size(); ++i) {
      sender_of[qps[i].first.qpn] = i;
      receiver_of[qps[i].second.qpn] = i;
      expect_posted(pair.b.post_receive(qps[i].second, receive(i, slice(remote, i * 256, 256))));
    }
    for (std::size_t i = 0; i < qps.size(); ++i) {
      expect_posted(pair.a.post_send(qps[i].first, send(i, slice(local, i * 256, 1 + i))));
    }
    const auto count = static_cast<std::uint32_t>(qps.size());
    const auto sent = pair.a.call<&Endpoint::poll>(wish_a.send_cq, count, kDefaultWaitMs);
    const auto got = pair.b.call<&Endpoint::poll>(wish_b.receive_cq, count, kDefaultWaitMs);
    std::set<std::uint64_t> arrived;
    for (std::uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(sent[i].status, IBV_WC_SUCCESS);
      EXPECT_EQ(sender_of.at(sent[i].qp_num), sent[i].wr_id);
      EXPECT_EQ(got[i].status, IBV_WC_SUCCESS);
      EXPECT_EQ(receiver_of.at(got[i].qp_num), got[i].wr_id);
      EXPECT_EQ(got[i].byte_len, 1 + got[i].wr_id);
      EXPECT_EQ(pair.b.peek(remote, got[i].wr_id * 256, got[i].byte_len),
                pair.a.peek(local, got[i].wr_id * 256, got[i].byte_len));
      arrived.insert(got[i].wr_id);
    }
    EXPECT_EQ(arrived.size(), count);
    if (round != 1) continue;
    for (std::size_t i = qps.size(); i-- > 0;) {
      if (i % 2 == 0) continue;
      ASSERT_EQ(pair.a.call<&Endpoint::destroy_qp>(qps[i].first.id), 0);
      ASSERT_EQ(pair.b.call<&Endpoint::destroy_qp>(qps[i].second.id), 0);
      qps.erase(qps.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

TEST_P(RcMany, ADestroyedQueuePairLeavesNoCompletionBehind) {
  Pair pair(GetParam());
  QpWish wish_b;
  wish_b.receive_cq = pair.b.call<&Endpoint::create_cq>(64, 0);
  const auto [qa, qb] = pair.add_qps({}, wish_b);
  const auto [qa2, qb2] = pair.add_qps({}, wish_b);
  for (std::uint64_t i = 0; i < 3; ++i) {
    expect_posted(pair.b.post_receive(qb, receive(i)));
    expect_posted(pair.b.post_receive(qb2, receive(10 + i)));
    expect_posted(pair.a.post_send(qa, send(i, {})));
    expect_posted(pair.a.post_send(qa2, send(i, {})));
  }
  pair.a.poll_sends(qa, 3);
  pair.a.poll_sends(qa2, 3);
  ASSERT_EQ(pair.b.call<&Endpoint::destroy_qp>(qb.id), 0);
  const auto got = pair.b.call<&Endpoint::poll>(wish_b.receive_cq, 3, kDefaultWaitMs);
  for (std::uint64_t i = 0; i < 3; ++i) expect_receive(got[i], 10 + i, 0, qb2);
  EXPECT_TRUE(pair.b.poll_once(wish_b.receive_cq, 8).empty());
}

TEST(RcContexts, SixInOneProcessTalkInARingAndCloseInAnyOrder) {
  constexpr std::size_t kContexts = 6;
  std::vector<std::unique_ptr<Side>> sides;
  std::vector<QpInfo> to_next;
  std::vector<QpInfo> to_previous;
  std::vector<RegionInfo> memory;
  for (std::size_t i = 0; i < kContexts; ++i) {
    sides.push_back(std::make_unique<Side>(std::make_shared<Session>()));
    to_next.push_back(sides[i]->create_qp());
    to_previous.push_back(sides[i]->create_qp());
    memory.push_back(
        sides[i]->allocate(i % 2 == 0 ? MemoryKind::kMapped : MemoryKind::kOrdinary, 64));
  }
  for (std::size_t i = 0; i < kContexts; ++i) {
    const std::size_t next = (i + 1) % kContexts;
    sides[i]->connect(to_next[i], to_previous[next]);
    sides[next]->connect(to_previous[next], to_next[i]);
  }
  sides[0]->store(memory[0], 0, 1);
  for (std::size_t step = 0; step < 5 * kContexts; ++step) {
    const std::size_t i = step % kContexts;
    const std::size_t next = (i + 1) % kContexts;
    expect_posted(
        sides[next]->post_receive(to_previous[next], receive(step, slice(memory[next], 0, 8))));
    expect_posted(sides[i]->post_send(to_next[i], send(step, slice(memory[i], 0, 8))));
    expect_wc(sides[i]->poll_sends(to_next[i], 1)[0], step, IBV_WC_SEND, to_next[i]);
    expect_receive(sides[next]->poll_receives(to_previous[next], 1)[0], step, 8, to_previous[next]);
    const std::uint64_t value = sides[next]->load(memory[next], 0);
    EXPECT_EQ(value, step + 1);
    sides[next]->store(memory[next], 0, value + 1);
  }
  for (const std::size_t i : {2, 0, 5, 1, 4, 3}) sides[i].reset();
}

TEST(RcProcesses, TwoHaveHundredsOfQueuePairsThatEachDeliver) { many_qps_each_deliver(500, 250); }

TEST(RcProcesses, EightTalkToEachOther) { all_to_all(8, 50); }

/// All meet at once, and fewer descriptors may be under way than they pass each other.
TEST(RcProcesses, SixteenTalkToEachOtherWhereFewDescriptorsMayBeUnderWay) {
  all_to_all(16, 5, {{kCondition, "limit nofile 128"}});
}

}  // namespace
}  // namespace verbatim::harness
