// SPDX-License-Identifier: BSD-2-Clause
//
// What the post verbs refuse, and how (IBTA 10.10.2, 11.4.1.1, 11.4.1.2; man ibv_post_send,
// ibv_post_recv): a positive errno, *bad_wr at the first request that was not taken, those before
// it performed.
#include <verbatim/memory.h>

#include "tests/support/expect.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/quirks.hpp"

namespace verbatim::harness {
namespace {

class RcPost : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcPost, on_every_device(each_way()));

SliceList too_many(const RegionInfo& region) {
  SliceList list;
  for (std::int32_t i = 0; i < kSliceSlots; ++i) list.add(slice(region, 0, 1));
  return list;
}

TEST_P(RcPost, SixteenSgesAndTheDepthsAskedForAreGranted) {
  // man ibv_create_qp: what is granted is no less than what was asked for.
  Pair pair(GetParam());
  EXPECT_GE(pair.qa.cap.max_send_sge, 16u);
  EXPECT_GE(pair.qa.cap.max_recv_sge, 16u);
  EXPECT_GE(pair.qa.cap.max_send_wr, 128u);
  EXPECT_GE(pair.qa.cap.max_recv_wr, 128u);
}

TEST_P(RcPost, BadWrNamesTheFailingSendAndThoseBeforeItArePerformed) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 4096);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 4096);
  pair.a.fill(local, 0, 64, 1);
  const Posted posted = pair.a.post_send(
      pair.qa,
      {write(1, slice(local, 0, 64), remote), write(2, slice(local, 0, 64), remote, 64),
       write(3, too_many(local), remote, 128), write(4, slice(local, 0, 64), remote, 192)});
  EXPECT_EQ(posted.error, EINVAL);
  EXPECT_EQ(posted.bad, 2);
  const auto done = pair.a.poll_sends(pair.qa, 2);
  expect_wc(done[0], 1, IBV_WC_RDMA_WRITE, pair.qa);
  expect_wc(done[1], 2, IBV_WC_RDMA_WRITE, pair.qa);
  // The queue pair took no harm.
  expect_posted(pair.a.post_send(pair.qa, write(5, slice(local, 0, 64), remote, 256)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 5, IBV_WC_RDMA_WRITE, pair.qa);
  EXPECT_EQ(pair.b.mismatch(remote, 0, 64, 1), -1);
  EXPECT_EQ(pair.b.mismatch(remote, 64, 64, 1), -1);
  expect_untouched(pair.b, remote, 128, 128, 0);
  EXPECT_EQ(pair.b.mismatch(remote, 256, 64, 1), -1);
}

TEST_P(RcPost, BadWrNamesTheFailingReceiveAndThoseBeforeItAreQueued) {
  Pair pair(GetParam());
  const RegionInfo from = pair.a.allocate(GetParam().memory, 64);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 64);
  const Posted posted = pair.b.post_receive(
      pair.qb, {{1, slice(to, 0, 8)}, {2, too_many(to)}, {3, slice(to, 16, 8)}});
  EXPECT_EQ(posted.error, EINVAL);
  EXPECT_EQ(posted.bad, 1);
  expect_posted(pair.b.post_receive(pair.qb, {4, slice(to, 24, 8)}));
  expect_posted(
      pair.a.post_send(pair.qa, {send(1, slice(from, 0, 8)), send(2, slice(from, 0, 8))}));
  const auto got = pair.b.poll_receives(pair.qb, 2);
  expect_receive(got[0], 1, 8, pair.qb);
  expect_receive(got[1], 4, 8, pair.qb);
}

TEST_P(RcPost, AnOpcodeThatRcDoesNotKnowIsRefused) {
  // IBTA table 46.
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64);
  Request request = send(1, slice(local, 0, 8));
  request.opcode = IBV_WR_TSO;
  const Posted posted = pair.a.post_send(pair.qa, request);
  EXPECT_EQ(posted.error, EINVAL);
  EXPECT_EQ(posted.bad, 0);
}

TEST_P(RcPost, AFullSendQueueIsEnomemUntilACompletionIsPolled) {
  // IBTA 10.8.5.1.
  PairWish wish;
  wish.a.send_depth = 16;
  Pair pair(GetParam(), wish);
  const std::uint32_t depth = pair.qa.cap.max_send_wr;
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 64);
  std::vector<Request> list;
  for (std::uint32_t i = 0; i < 4 * depth + 64; ++i) {
    list.push_back(write(i, slice(local, 0, 8), remote));
  }
  const Posted posted = pair.a.post_send(pair.qa, list);
  EXPECT_EQ(posted.error, ENOMEM);
  // It may have been given more than it was promised, never less.
  ASSERT_GE(posted.bad, static_cast<std::int32_t>(depth));
  const auto taken = static_cast<std::uint32_t>(posted.bad);
  if (quirk_of(pair.qa.vendor, kFreesSlotsEarly).empty()) {
    EXPECT_EQ(pair.a.post_send(pair.qa, write(1, slice(local, 0, 8), remote)).error, ENOMEM);
  }
  const auto done = pair.a.poll_sends(pair.qa, taken);
  for (std::uint32_t i = 0; i < taken; ++i) expect_wc(done[i], i, IBV_WC_RDMA_WRITE, pair.qa);
  expect_posted(pair.a.post_send(pair.qa, write(1234, slice(local, 0, 8), remote)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 1234, IBV_WC_RDMA_WRITE, pair.qa);
}

TEST_P(RcPost, AFullReceiveQueueIsEnomemUntilAReceiveIsPolled) {
  // IBTA 10.8.5.1.
  PairWish wish;
  wish.b.receive_depth = 16;
  Pair pair(GetParam(), wish);
  const std::uint32_t depth = pair.qb.cap.max_recv_wr;
  std::vector<Receive> list;
  for (std::uint32_t i = 0; i < 4 * depth + 64; ++i) list.push_back({i, {}});
  const Posted posted = pair.b.post_receive(pair.qb, list);
  EXPECT_EQ(posted.error, ENOMEM);
  ASSERT_GE(posted.bad, static_cast<std::int32_t>(depth));
  EXPECT_EQ(pair.b.post_receive(pair.qb, receive(1)).error, ENOMEM);
  expect_posted(pair.a.post_send(pair.qa, send(1, {})));
  expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 0, 0, pair.qb);
  expect_posted(pair.b.post_receive(pair.qb, receive(1234)));
}

TEST_P(RcPost, QueuesOfEveryDepthWrapAround) {
  for (const std::uint32_t depth : {1u, 2u, 3u, 7u, 33u}) {
    SCOPED_TRACE(depth);
    PairWish wish;
    wish.a.send_depth = depth;
    wish.b.receive_depth = depth;
    Pair pair(GetParam(), wish);
    const RegionInfo from = pair.a.allocate(GetParam().memory, 256);
    const RegionInfo to = pair.b.allocate(GetParam().memory, 256);
    for (std::uint32_t i = 0; i < 5 * depth + 11; ++i) {
      const std::uint64_t size = (i * 37) % 200;
      pair.a.fill(from, 0, size, i);
      expect_posted(pair.b.post_receive(pair.qb, {i, slice(to, 0, 256)}));
      expect_posted(pair.a.post_send(pair.qa, send(i, slice(from, 0, size))));
      expect_wc(pair.a.poll_sends(pair.qa, 1)[0], i, IBV_WC_SEND, pair.qa);
      expect_receive(pair.b.poll_receives(pair.qb, 1)[0], i, size, pair.qb);
      ASSERT_EQ(pair.b.mismatch(to, 0, size, i), -1);
    }
  }
}

TEST_P(RcPost, EachReceiveOfAListTakesItsMessageWhateverStandsBesideIt) {
  // IBTA 10.2.7.1, 11.4.1.2: in one piece or in several, of one region or another, or without room.
  constexpr std::uint64_t kBytes = 24, kStride = 64;
  for (const std::uint32_t depth : {1u, 2u, 3u, 7u, 33u}) {
    SCOPED_TRACE(depth);
    PairWish wish;
    wish.a.send_depth = wish.b.receive_depth = depth;
    Pair pair(GetParam(), wish);
    const RegionInfo from = pair.a.allocate(GetParam().memory, kBytes);
    const RegionInfo tos[] = {pair.b.allocate(GetParam().memory, depth * kStride),
                              pair.b.allocate(GetParam().memory, depth * kStride)};
    pair.a.fill(from, 0, kBytes, depth);
    for (std::uint32_t round = 0; round < 9; ++round) {
      for (const RegionInfo& to : tos) pair.b.set(to, 0, depth * kStride, 0);
      std::vector<Receive> receives;
      std::vector<Request> sends;
      const auto region_of = [&](std::uint32_t i) { return (i + round) / 2 % 2; };
      const auto bytes_of = [&](std::uint32_t i) { return (i + round) % 7 == 6 ? 0 : kBytes; };
      for (std::uint32_t i = 0; i < depth; ++i) {
        const RegionInfo& to = tos[region_of(i)];
        const std::uint64_t at = i * kStride;
        SliceList room;
        if (bytes_of(i) != 0 && (i + round) % 5 == 4)
          room = {slice(to, at, 7), slice(to, at + 7, kStride - 7)};
        else if (bytes_of(i) != 0)
          room = slice(to, at, kStride);
        receives.push_back(receive(i, room));
        sends.push_back(send(i, slice(from, 0, bytes_of(i))));
      }
      expect_posted(pair.b.post_receive(pair.qb, receives));
      expect_posted(pair.a.post_send(pair.qa, sends));
      (void)pair.a.poll_sends(pair.qa, depth);
      const auto got = pair.b.poll_receives(pair.qb, depth);
      for (std::uint32_t i = 0; i < depth; ++i) {
        expect_receive(got[i], i, bytes_of(i), pair.qb);
        ASSERT_EQ(pair.b.mismatch(tos[region_of(i)], i * kStride, bytes_of(i), depth), -1) << i;
        expect_untouched(pair.b, tos[1 - region_of(i)], i * kStride, kStride, 0);
      }
    }
  }
}

TEST_P(RcPost, ASendInAStateThatCannotSendIsEinval) {
  // IBTA 10.3.1, 11.4.1.1; man ibv_post_send.
  PairWish wish;
  wish.connected = false;
  Pair pair(GetParam(), wish);
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64);
  const auto refused = [&](const char* state) {
    SCOPED_TRACE(state);
    const Posted posted = pair.a.post_send(pair.qa, send(1, slice(local, 0, 8)));
    EXPECT_EQ(posted.error, EINVAL);
    EXPECT_EQ(posted.bad, 0);
  };
  refused("RESET");
  ASSERT_EQ(pair.a.call<&Endpoint::to_init>(pair.qa.id, Link{}), 0);
  refused("INIT");
  ASSERT_EQ(pair.a.call<&Endpoint::to_rtr>(pair.qa.id, pair.qb, Link{}), 0);
  refused("RTR");
  ASSERT_EQ(pair.a.call<&Endpoint::to_rts>(pair.qa.id, Link{}), 0);
  EXPECT_EQ(pair.a.state(pair.qa), IBV_QPS_RTS);
}

TEST_P(RcPost, AReceiveIsRefusedInResetAndTakenFromInitOn) {
  // IBTA 10.3.1, 11.4.1.2; man ibv_post_recv.
  PairWish wish;
  wish.connected = false;
  Pair pair(GetParam(), wish);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 64);
  const Posted posted = pair.b.post_receive(pair.qb, {1, slice(to, 0, 8)});
  EXPECT_EQ(posted.error, EINVAL);
  EXPECT_EQ(posted.bad, 0);
  ASSERT_EQ(pair.b.call<&Endpoint::to_init>(pair.qb.id, Link{}), 0);
  expect_posted(pair.b.post_receive(pair.qb, {2, slice(to, 0, 8)}));
  ASSERT_EQ(pair.b.call<&Endpoint::to_rtr>(pair.qb.id, pair.qa, Link{}), 0);
  expect_posted(pair.b.post_receive(pair.qb, {3, slice(to, 8, 8)}));
  ASSERT_EQ(pair.b.call<&Endpoint::to_rts>(pair.qb.id, Link{}), 0);
  pair.a.connect(pair.qa, pair.qb);
  const RegionInfo from = pair.a.allocate(GetParam().memory, 64);
  expect_posted(
      pair.a.post_send(pair.qa, {send(1, slice(from, 0, 8)), send(2, slice(from, 0, 8))}));
  const auto got = pair.b.poll_receives(pair.qb, 2);
  expect_receive(got[0], 2, 8, pair.qb);
  expect_receive(got[1], 3, 8, pair.qb);
}

TEST(RcObjects, AreNotDestroyedWhileOthersUseThem) {
  // man ibv_dealloc_pd, ibv_destroy_cq, ibv_create_comp_channel.
  const AllowedLog says_why("verbatim: ");
  const auto session = std::make_shared<Session>();
  Endpoint endpoint(session);
  QpWish wish;
  wish.with_channel = 1;
  const QpInfo qp = endpoint.create_qp(wish);
  const RegionInfo region = endpoint.allocate(MemoryKind::kMapped, 4096, kAllAccess);
  EXPECT_EQ(ibv_dealloc_pd(endpoint.pd()), EBUSY);
  EXPECT_EQ(endpoint.destroy_cq(qp.send_cq), EBUSY);
  EXPECT_EQ(endpoint.destroy_cq(qp.receive_cq), EBUSY);
  EXPECT_EQ(ibv_destroy_comp_channel(endpoint.cq(qp.send_cq)->channel), EBUSY);
  EXPECT_EQ(vbt_free_shared(endpoint.bytes(region.id)), EBUSY);
  EXPECT_EQ(endpoint.destroy_qp(qp.id), 0);
  EXPECT_EQ(ibv_dealloc_pd(endpoint.pd()), EBUSY) << "the region is left";
  EXPECT_EQ(endpoint.destroy_cq(qp.send_cq), 0);
  EXPECT_EQ(endpoint.destroy_cq(qp.receive_cq), 0);
}

}  // namespace
}  // namespace verbatim::harness
