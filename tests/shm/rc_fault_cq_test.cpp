// SPDX-License-Identifier: BSD-2-Clause
//
// A completion queue that is too small (IBTA 10.8.2, 11.6.3.1): what it holds stays whole, what it
// cannot hold is counted, the CQ's event and the log say so. And nothing but that queue suffers.
#include <algorithm>

#include "tests/support/log_watch.hpp"
#include "tests/support/rc_fault.hpp"

namespace verbatim::harness {
namespace {

class RcOverrun : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcOverrun, each_way());

constexpr std::uint32_t kSends = 100;

PairWish with_small_queue_at_a() {
  PairWish wish;
  wish.a.cq_depth = 8;
  return wish;
}

struct Stage {
  AllowedLog says_that = AllowedLog("completion queue with 8 entries overran");
  AllowedLog says_how_many = AllowedLog("completion queue that overran lost");
  Pair pair;
  RegionInfo local;
  RegionInfo remote;
  explicit Stage(Setting setting)
      : pair(setting, with_small_queue_at_a()),
        local(pair.a.allocate(setting.memory, 4096)),
        remote(pair.b.allocate(setting.memory, 4096)) {
    EXPECT_EQ(pair.a.call<&Endpoint::cq_depth>(pair.qa.send_cq), 8);
  }

  void expect_one_event(std::int32_t cq) {
    const AsyncEvent event = pair.a.call<&Endpoint::take_async_event>(kDefaultWaitMs);
    EXPECT_EQ(event.type, IBV_EVENT_CQ_ERR);
    EXPECT_EQ(event.cq, cq);
    EXPECT_EQ(pair.a.call<&Endpoint::take_async_event>(0).type, -1);
  }
  void expect_counted(const QpInfo& qp, std::uint32_t lost) {
    ASSERT_EQ(pair.a.call<&Endpoint::destroy_qp>(qp.id), 0);
    ASSERT_EQ(pair.a.call<&Endpoint::destroy_cq>(qp.send_cq), 0);
    if (LogWatch::instance() == nullptr) return;  // a run for people, who read the log themselves
    const auto lines = LogWatch::instance()->complaints();
    const auto said = [&](const std::string& words) {
      return std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
        return line.find(words) != std::string::npos;
      });
    };
    EXPECT_EQ(said("8 entries overran"), 1) << ::testing::PrintToString(lines);
    EXPECT_EQ(said("lost " + std::to_string(lost) + " completions"), 1)
        << ::testing::PrintToString(lines);
  }
};

TEST_P(RcOverrun, KeepsTheFirstCompletionsCountsTheRestAndRaisesOneEvent) {
  Stage stage(GetParam());
  Pair& pair = stage.pair;
  std::vector<Request> list;
  for (std::uint32_t i = 0; i < kSends; ++i) {
    list.push_back(write(i, slice(stage.local, 0, 8), stage.remote));
  }
  pair.a.store(stage.local, 8, 1);
  list.back() = write(kSends - 1, slice(stage.local, 8, 8), stage.remote, 8);
  expect_posted(pair.a.post_send(pair.qa, list));
  // Nobody polls: its own thread moves on what could not be done at once.
  ASSERT_TRUE(wait_until([&] { return pair.b.load(stage.remote, 8) == 1; }));
  stage.expect_one_event(pair.qa.send_cq);
  const auto found = pair.a.poll_once(pair.qa.send_cq, kSends);
  ASSERT_EQ(found.size(), 8u);
  for (std::uint32_t i = 0; i < 8; ++i) expect_wc(found[i], i, IBV_WC_RDMA_WRITE, pair.qa);
  // There is room again; a later completion gives the whole send queue back.
  expect_posted(pair.a.post_send(pair.qa, write(500, slice(stage.local, 0, 8), stage.remote)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 500, IBV_WC_RDMA_WRITE, pair.qa);
  for (std::uint32_t i = 0; i < 2 * pair.qa.cap.max_send_wr; ++i) {
    expect_posted(pair.a.post_send(pair.qa, write(i, slice(stage.local, 0, 8), stage.remote)));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], i, IBV_WC_RDMA_WRITE, pair.qa);
  }
  stage.expect_counted(pair.qa, kSends - 8);
}

TEST_P(RcOverrun, KeepsTheFirstFlushesToo) {
  Stage stage(GetParam());
  Pair& pair = stage.pair;
  std::vector<Request> waiting;
  for (std::uint32_t i = 0; i < kSends; ++i) waiting.push_back(send(i, {}).unsignaled());
  expect_posted(pair.a.post_send(pair.qa, waiting));
  ASSERT_EQ(pair.a.to_state(pair.qa, IBV_QPS_ERR), 0);
  stage.expect_one_event(pair.qa.send_cq);
  const auto found = pair.a.poll_once(pair.qa.send_cq, kSends);
  ASSERT_EQ(found.size(), 8u);
  for (std::uint32_t i = 0; i < 8; ++i) expect_error(found[i], i, IBV_WC_WR_FLUSH_ERR, pair.qa);
  stage.expect_counted(pair.qa, kSends - 8);
}

TEST_P(RcOverrun, OfSendCompletionsLeavesReceivesAndOtherQueuesAlone) {
  Stage stage(GetParam());
  Pair& pair = stage.pair;
  // One small queue for both directions of one connection; another connection beside it.
  QpWish shared;
  shared.send_cq = shared.receive_cq = pair.qa.send_cq;
  const auto [qa, qb] = pair.add_qps(shared, {});
  const auto [other_a, other_b] = pair.add_qps({}, {});
  for (std::uint32_t i = 0; i < 20; ++i) {
    expect_posted(pair.a.post_receive(qa, receive(100 + i, slice(stage.local, 64, 8))));
  }
  for (std::uint32_t i = 0; i < 20; ++i) {
    expect_posted(pair.b.post_send(qb, send(i, slice(stage.remote, 64, 8))));
    expect_wc(pair.b.poll_sends(qb, 1)[0], i, IBV_WC_SEND, qb);
  }
  std::vector<Request> list;
  for (std::uint32_t i = 0; i < 10; ++i) list.push_back(write(i, {}, stage.remote));
  expect_posted(pair.a.post_send(qa, list));
  stage.expect_one_event(pair.qa.send_cq);
  expect_posted(pair.a.post_send(other_a, write(7, slice(stage.local, 0, 8), stage.remote)));
  expect_wc(pair.a.poll_sends(other_a, 1)[0], 7, IBV_WC_RDMA_WRITE, other_a);
  std::uint32_t sent = 0, received = 0;
  for (const ibv_wc& wc : pair.a.call<&Endpoint::poll>(qa.send_cq, 28u, kDefaultWaitMs)) {
    if (wc.opcode == IBV_WC_RECV) {
      expect_receive(wc, 100 + received++, 8, qa);
    } else {
      expect_wc(wc, sent++, IBV_WC_RDMA_WRITE, qa);
    }
  }
  EXPECT_EQ(sent, 8u);
  EXPECT_EQ(received, 20u);
}

}  // namespace
}  // namespace verbatim::harness
