// SPDX-License-Identifier: BSD-2-Clause
//
// What the post verbs refuse (IBTA 10.10.2, immediate errors, 11.4.1.1, 11.4.1.2; man
// ibv_post_send, ibv_post_recv): a positive errno, *bad_wr at the request, everything before it
// done or in the queue, nothing behind it taken, both queue pairs as they were. And what stands in
// full queues when they end (IBTA 10.3.1, 10.8.5.1).
#include "tests/support/quirks.hpp"
#include "tests/support/rc_fault.hpp"
#include "tests/support/two_sides.hpp"

namespace verbatim::harness {
namespace {

class RcRefusal : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcRefusal, on_every_device(each_way()));

constexpr std::uint64_t kPiece = 64;

struct Stage {
  Pair pair;
  RegionInfo local;
  RegionInfo remote;
  explicit Stage(Setting setting, const PairWish& wish = {})
      : pair(setting, wish),
        local(pair.a.allocate(setting.memory, 4096)),
        remote(pair.b.allocate(setting.memory, 4096)) {
    pair.a.fill(local, 0, 4096, 1);
  }

  /// The third of four is refused so, once while nothing waits and once while the queue does.
  void expect_refused(const char* what, Request bad, int error = EINVAL) {
    SCOPED_TRACE(what);
    bad.wr_id = 3;
    for (const bool waiting : {false, true}) {
      SCOPED_TRACE(waiting ? "behind sends that wait" : "with an empty queue");
      const auto [qa, qb] = pair.add_qps({}, {});
      const Slice piece = slice(local, 0, kPiece);
      if (!waiting) expect_posted(pair.b.post_receive(qb, three_receives()));
      const Posted posted =
          pair.a.post_send(qa, {send(1, piece), send(2, piece).unsignaled(), bad, send(4, piece)});
      EXPECT_EQ(posted.error, error);
      EXPECT_EQ(posted.bad, 2);
      if (waiting) expect_posted(pair.b.post_receive(qb, three_receives()));
      expect_posted(pair.a.post_send(qa, send(5, piece)));
      const auto sent = pair.a.poll_sends(qa, 2);
      expect_wc(sent[0], 1, IBV_WC_SEND, qa);
      expect_wc(sent[1], 5, IBV_WC_SEND, qa);
      const auto got = pair.b.poll_receives(qb, 3);
      for (std::uint64_t i = 0; i < 3; ++i) expect_receive(got[i], 10 + i, kPiece, qb);
      EXPECT_EQ(pair.b.mismatch(remote, 2 * kPiece, kPiece, 1), -1);
      EXPECT_TRUE(pair.b.poll_once(qb.receive_cq, 1).empty());
      EXPECT_EQ(pair.a.state(qa), IBV_QPS_RTS);
      EXPECT_EQ(pair.b.state(qb), IBV_QPS_RTS);
    }
  }

 private:
  std::vector<Receive> three_receives() {
    return {receive(10, slice(remote, 0, kPiece)), receive(11, slice(remote, kPiece, kPiece)),
            receive(12, slice(remote, 2 * kPiece, kPiece))};
  }
};

SliceList repeated(const Slice& piece, std::int32_t count) {
  SliceList list;
  for (std::int32_t i = 0; i < count; ++i) list.add(piece);
  return list;
}

TEST_P(RcRefusal, MoreInlineThanWasGranted) {
  // man ibv_create_qp: max_inline_data.
  Stage stage(GetParam());
  const std::uint64_t most = stage.pair.qa.cap.max_inline_data;
  const auto inlined = [&](const SliceList& from) { return send(0, from).with(IBV_SEND_INLINE); };
  stage.expect_refused("send", inlined(slice(stage.local, 0, most + 1)));
  stage.expect_refused(
      "write", write(0, slice(stage.local, 0, most + 1), stage.remote).with(IBV_SEND_INLINE));
  stage.expect_refused("pieces together",
                       inlined({slice(stage.local, 0, most), slice(stage.local, 0, 1)}));
  stage.expect_refused("an overflowing sum",
                       inlined(repeated(slice(stage.local, 0, 0x80000000u), 2)));
  // All of what was granted is taken.
  Pair& pair = stage.pair;
  expect_posted(pair.b.post_receive(pair.qb, receive(1, slice(stage.remote, 0, most))));
  expect_posted(pair.a.post_send(pair.qa, inlined(slice(stage.local, 0, most))));
  expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 1, most, pair.qb);
  EXPECT_EQ(pair.b.mismatch(stage.remote, 0, most, 1), -1);
}

TEST_P(RcRefusal, InlineForWhatReturnsBytes) {
  // man ibv_post_send: "Valid only for Send and RDMA Write".
  Stage stage(GetParam());
  const Slice eight = slice(stage.local, 0, 8);
  stage.expect_refused("read", read(0, eight, stage.remote).with(IBV_SEND_INLINE));
  stage.expect_refused("atomic", fetch_add(0, eight, stage.remote, 0, 1).with(IBV_SEND_INLINE));
}

TEST_P(RcRefusal, MorePiecesThanWereGranted) {
  // IBTA 11.4.1.1, man ibv_create_qp: max_send_sge.
  Stage stage(GetParam());
  const SliceList many = repeated(slice(stage.local, 0, 1), kSliceSlots);
  stage.expect_refused("send", send(0, many));
  stage.expect_refused("write", write(0, many, stage.remote));
  stage.expect_refused("read", read(0, many, stage.remote));
  stage.expect_refused("inline send", send(0, many).with(IBV_SEND_INLINE));
  SliceList negative;
  negative.count = -1;
  stage.expect_refused("a negative number", send(0, negative));
}

TEST_P(RcRefusal, OperationsThatReliableConnectionsLack) {
  // IBTA table 46; man ibv_post_send has the same table.
  Stage stage(GetParam());
  for (const ibv_wr_opcode opcode : {IBV_WR_TSO, IBV_WR_DRIVER1}) {
    SCOPED_TRACE(opcode);
    Request request = send(0, slice(stage.local, 0, 8));
    request.opcode = opcode;
    stage.expect_refused("opcode", request);
  }
}

TEST_P(RcRefusal, ReadsAndAtomicsWhereNoneWereAgreedOn) {
  // man ibv_modify_qp: max_rd_atomic, of which there are none here.
  PairWish wish;
  wish.link_a.max_rd_atomic = 0;
  Stage stage(GetParam(), wish);
  const Slice eight = slice(stage.local, 0, 8);
  stage.expect_refused("read", read(0, eight, stage.remote));
  stage.expect_refused("fetch_add", fetch_add(0, eight, stage.remote, 0, 1));
  stage.expect_refused("compare_swap", compare_swap(0, eight, stage.remote, 0, 0, 1));
}

/// As on a HCA, where the send queue holds back what exceeds the agreed number: programs post as
/// many as the queue takes.
TEST_P(RcRefusal, IsNotForMoreReadsThanMayBeInFlightTheyTakeTurns) {
  constexpr std::uint32_t kReads = 100;
  PairWish wish;
  wish.link_a.max_rd_atomic = 1;
  Stage stage(GetParam(), wish);
  Pair& pair = stage.pair;
  std::vector<Request> list;
  for (std::uint32_t i = 0; i < kReads; ++i) {
    list.push_back(fetch_add(i, slice(stage.local, i * 8, 8), stage.remote, 0, 1));
  }
  expect_posted(pair.a.post_send(pair.qa, list));
  const auto done = pair.a.poll_sends(pair.qa, kReads);
  for (std::uint32_t i = 0; i < kReads; ++i) {
    expect_wc(done[i], i, IBV_WC_FETCH_ADD, pair.qa);
    EXPECT_EQ(pair.a.load(stage.local, i * 8), i);
  }
}

TEST_P(RcRefusal, IsNotForAQueueThatDrainsWhatItTakesWaitsUntilItServesAgain) {
  // IBTA 10.3.1.5.
  Stage stage(GetParam());
  Pair& pair = stage.pair;
  const Slice eight = slice(stage.local, 0, 8);
  for (const bool ends_in_error : {false, true}) {
    const auto [qa, qb] = pair.add_qps({}, {});
    drain(pair.a, qa);
    expect_posted(pair.a.post_send(
        qa, {write(1, eight, stage.remote), read(2, eight, stage.remote, 8).unsignaled(),
             write(3, eight, stage.remote, 16)}));
    EXPECT_TRUE(pair.a.poll_once(qa.send_cq, 1).empty());
    ASSERT_EQ(pair.a.to_state(qa, ends_in_error ? IBV_QPS_ERR : IBV_QPS_RTS), 0);
    if (ends_in_error) {
      const auto flushed = pair.a.poll_sends(qa, 3);
      for (std::uint64_t i = 0; i < 3; ++i) {
        expect_error(flushed[i], 1 + i, IBV_WC_WR_FLUSH_ERR, qa);
      }
    } else {
      const auto done = pair.a.poll_sends(qa, 2);
      expect_wc(done[0], 1, IBV_WC_RDMA_WRITE, qa);
      expect_wc(done[1], 3, IBV_WC_RDMA_WRITE, qa);
    }
  }
}

TEST_P(RcRefusal, AFullSendQueueLosesNothingThatItHoldsInOrOutOfError) {
  for (const bool ends_in_error : {false, true}) {
    SCOPED_TRACE(ends_in_error);
    Stage stage(GetParam());
    Pair& pair = stage.pair;
    const std::uint32_t depth = pair.qa.cap.max_send_wr;
    // `b` has no receives yet: all of them wait.
    std::vector<Request> list;
    for (std::uint32_t i = 0; i < depth + 3; ++i) {
      list.push_back(send(i, slice(stage.local, i, 1)).unsignaled());
    }
    list[depth - 1] = list[depth - 1].with(IBV_SEND_SIGNALED);
    const Posted posted = pair.a.post_send(pair.qa, list);
    EXPECT_EQ(posted.error, ENOMEM);
    EXPECT_EQ(posted.bad, static_cast<std::int32_t>(depth));
    EXPECT_EQ(pair.a.post_send(pair.qa, send(1, {})).error, ENOMEM);
    if (ends_in_error) {
      ASSERT_EQ(pair.a.to_state(pair.qa, IBV_QPS_ERR), 0);
      if (quirk_of(pair.qa.vendor, kFreesSlotsEarly).empty()) {
        EXPECT_EQ(pair.a.post_send(pair.qa, send(1, {})).error, ENOMEM) << "until they are polled";
      }
      const auto sent = pair.a.poll_sends(pair.qa, depth);
      for (std::uint32_t i = 0; i < depth; ++i) {
        expect_error(sent[i], i, IBV_WC_WR_FLUSH_ERR, pair.qa);
      }
      expect_posted(pair.a.post_send(pair.qa, send(99, {})));
      expect_error(pair.a.poll_sends(pair.qa, 1)[0], 99, IBV_WC_WR_FLUSH_ERR, pair.qa);
      continue;
    }
    for (std::uint32_t i = 0; i < depth; ++i) {
      expect_posted(pair.b.post_receive(pair.qb, receive(i, slice(stage.remote, i, 1))));
    }
    const auto got = pair.b.poll_receives(pair.qb, depth);
    for (std::uint32_t i = 0; i < depth; ++i) expect_receive(got[i], i, 1, pair.qb);
    EXPECT_EQ(pair.b.mismatch(stage.remote, 0, depth, 1), -1);
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], depth - 1, IBV_WC_SEND, pair.qa);
    EXPECT_TRUE(pair.a.poll_once(pair.qa.send_cq, 1).empty());
  }
}

TEST_P(RcRefusal, AFullReceiveQueueLosesNothingThatItHoldsInError) {
  Stage stage(GetParam());
  Pair& pair = stage.pair;
  const std::uint32_t depth = pair.qb.cap.max_recv_wr;
  std::vector<Receive> list;
  for (std::uint32_t i = 0; i < depth + 3; ++i) list.push_back(receive(i));
  const Posted posted = pair.b.post_receive(pair.qb, list);
  EXPECT_EQ(posted.error, ENOMEM);
  EXPECT_EQ(posted.bad, static_cast<std::int32_t>(depth));
  ASSERT_EQ(pair.b.to_state(pair.qb, IBV_QPS_ERR), 0);
  if (quirk_of(pair.qb.vendor, kFreesSlotsEarly).empty()) {
    const Posted later = pair.b.post_receive(pair.qb, {receive(98), receive(99)});
    EXPECT_EQ(later.error, ENOMEM) << "until they are polled";
    EXPECT_EQ(later.bad, 0);
  }
  const auto got = pair.b.poll_receives(pair.qb, depth);
  for (std::uint32_t i = 0; i < depth; ++i) expect_error(got[i], i, IBV_WC_WR_FLUSH_ERR, pair.qb);
  expect_posted(pair.b.post_receive(pair.qb, receive(99)));
  expect_error(pair.b.poll_receives(pair.qb, 1)[0], 99, IBV_WC_WR_FLUSH_ERR, pair.qb);
}

TEST_P(RcRefusal, AReceiveWithMorePiecesThanWereGrantedLeavesTheQueueAsItWas) {
  // IBTA 11.4.1.2, man ibv_create_qp: max_recv_sge.
  Stage stage(GetParam());
  Pair& pair = stage.pair;
  SliceList negative;
  negative.count = -1;
  for (const SliceList& bad : {repeated(slice(stage.remote, 0, 1), kSliceSlots), negative}) {
    const Posted posted = pair.b.post_receive(
        pair.qb, {receive(1, slice(stage.remote, 0, 8)), receive(2, bad), receive(3)});
    EXPECT_EQ(posted.error, EINVAL);
    EXPECT_EQ(posted.bad, 1);
    expect_posted(pair.b.post_receive(pair.qb, receive(4, slice(stage.remote, 8, 8))));
    const Slice eight = slice(stage.local, 0, 8);
    expect_posted(pair.a.post_send(pair.qa, {send(5, eight), send(6, eight)}));
    const auto got = pair.b.poll_receives(pair.qb, 2);
    expect_receive(got[0], 1, 8, pair.qb);
    expect_receive(got[1], 4, 8, pair.qb);
    pair.a.poll_sends(pair.qa, 2);
    EXPECT_EQ(pair.b.state(pair.qb), IBV_QPS_RTS);
  }
}

}  // namespace
}  // namespace verbatim::harness
