// SPDX-License-Identifier: BSD-2-Clause
//
// What the suite cannot ask of a device that loses nothing, asked of the witness
// (tests/support/packet), a provider made of runtime/verbs/software. The suite's sentences about what
// goes on within a process are in this program, too.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/support/expect.hpp"
#include "tests/support/packet/weather.hpp"

namespace verbatim::harness {
namespace {

class OverABadLink : public ::testing::TestWithParam<Weather> {
 protected:
  OverABadLink() { set_weather(GetParam()); }
  ~OverABadLink() override { set_weather({}); }
};
INSTANTIATE_TEST_SUITE_P(
    , OverABadLink,
    ::testing::Values(Weather{.lost = 20, .seed = 3}, Weather{.doubled = 30, .seed = 5},
                      Weather{.late = 30, .seed = 7},
                      Weather{.lost = 10, .doubled = 10, .late = 10, .seed = 9}));

PairWish impatient() {
  PairWish wish;
  wish.link_a.timeout = wish.link_b.timeout = 6;  // 262 us
  return wish;
}

TEST_P(OverABadLink, MessagesArriveWholeOnceAndInOrder) {
  Pair pair(kHere, impatient());
  const RegionInfo from = pair.a.allocate(MemoryKind::kMapped, 4_KiB);
  const RegionInfo to = pair.b.allocate(MemoryKind::kMapped, 4_KiB);
  for (std::uint32_t round = 0; round < 20; ++round) {
    pair.a.fill(from, 0, 4_KiB, round);
    for (std::uint64_t i = 0; i < 8; ++i) {
      expect_posted(pair.b.post_receive(pair.qb, {i, slice(to, i * 512, 512)}));
      expect_posted(pair.a.post_send(pair.qa, send(i, slice(from, i * 512, 512))));
    }
    for (const ibv_wc& wc : pair.a.poll_sends(pair.qa, 8)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    const auto received = pair.b.poll_receives(pair.qb, 8);
    for (std::uint64_t i = 0; i < 8; ++i) expect_receive(received[i], i, 512, pair.qb);
    EXPECT_EQ(pair.b.mismatch(to, 0, 4_KiB, round), -1);
  }
}

TEST_P(OverABadLink, AnAtomicIsPerformedOnceAndItsAnswerIsWhatItFound) {
  Pair pair(kHere, impatient());
  const RegionInfo local = pair.a.allocate(MemoryKind::kMapped, 4_KiB);
  const RegionInfo remote = pair.b.allocate(MemoryKind::kMapped, 64);
  for (std::uint64_t round = 0; round < 20; ++round) {
    for (std::uint64_t i = 0; i < 8; ++i)
      expect_posted(pair.a.post_send(pair.qa, fetch_add(i, slice(local, i * 8, 8), remote, 8, 1)));
    pair.a.poll_sends(pair.qa, 8);
    for (std::uint64_t i = 0; i < 8; ++i) EXPECT_EQ(pair.a.load(local, i * 8), round * 8 + i);
  }
  EXPECT_EQ(pair.b.load(remote, 8), 160u);
}

TEST(OverALink, WaitingForAReceiveIsNoTryOfReachingThePeer) {
  // IBTA 9.7.5.2.8: the responder asked for the wait, so it is there.
  PairWish wish = impatient();
  wish.link_a.retry_count = 0;
  wish.link_b.min_rnr_timer = 1;  // 10 us
  Pair pair(kHere, wish);
  const RegionInfo from = pair.a.allocate(MemoryKind::kMapped, 64);
  const RegionInfo to = pair.b.allocate(MemoryKind::kMapped, 64);
  expect_posted(pair.a.post_send(pair.qa, send(1, slice(from, 0, 8))));
  // Long enough for many of them.
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(pair.a.poll_once(pair.qa.send_cq, 1).empty());
  expect_posted(pair.b.post_receive(pair.qb, receive(2, slice(to, 0, 8))));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_SEND, pair.qa);
  expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 2, 8, pair.qb);
}

TEST(OverALink, OfABatchThatTheQueueHasNoRoomForNowNothingIsPosted) {
  PairWish wish;
  wish.a.send_ops = IBV_QP_EX_WITH_RDMA_WRITE;
  wish.a.send_depth = 8;
  Pair pair(kHere, wish);
  const RegionInfo from = pair.a.allocate(MemoryKind::kMapped, 64);
  const RegionInfo to = pair.b.allocate(MemoryKind::kMapped, 64);
  // A request has its place until its completion is polled, or that of one behind it.
  for (std::uint64_t i = 0; i < 6; ++i)
    expect_posted(pair.a.post_send(pair.qa, write(i, slice(from, 0, 8), to, 8)));
  ibv_qp_ex* const calls = ibv_qp_to_qp_ex(pair.a.here().qp(pair.qa.id));
  const auto post = [&](std::uint64_t count) {
    std::uint64_t value = 7;
    ibv_wr_start(calls);
    for (std::uint64_t i = 0; i < count; ++i) {
      calls->wr_id = 6 + i;
      calls->wr_flags = IBV_SEND_SIGNALED;
      ibv_wr_rdma_write(calls, to.rkey, to.address);
      ibv_wr_set_inline_data(calls, &value, sizeof value);
    }
    return ibv_wr_complete(calls);
  };
  EXPECT_EQ(post(3), ENOMEM);
  EXPECT_EQ(pair.b.load(to, 0), 0u);
  EXPECT_EQ(post(2), 0);
  EXPECT_EQ(pair.b.load(to, 0), 7u);
  const auto done = pair.a.poll_sends(pair.qa, 8);
  for (std::uint64_t i = 0; i < 8; ++i) expect_wc(done[i], i, IBV_WC_RDMA_WRITE, pair.qa);
}

}  // namespace
}  // namespace verbatim::harness
