// SPDX-License-Identifier: BSD-2-Clause
//
// IBV_SEND_INLINE (man ibv_post_send, ibv_create_qp; IBTA has no such thing): the data is taken
// while the post runs, from memory that nobody registered.
#include "tests/support/expect.hpp"

namespace verbatim::harness {
namespace {

class RcInline : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcInline, on_every_device(each_way_and_loopback()));

constexpr std::uint32_t kNoSuchKey = 0xDEAD0000;
constexpr std::uint64_t kInlineSizes[] = {0, 1, 7, 8, 55, 56, 57, 64, 100, 128, 219, 220};

Slice unregistered(const RegionInfo& region, std::uint64_t offset, std::uint64_t length) {
  Slice piece = slice(region, offset, length);
  piece.lkey = kNoSuchKey;
  return piece;
}

TEST_P(RcInline, AtLeast220BytesAreGranted) {
  // man ibv_create_qp: no less than what the harness asks for.
  Pair pair(GetParam());
  EXPECT_GE(pair.qa.cap.max_inline_data, 220u);
}

TEST_P(RcInline, SendTakesTheDataBeforeThePostReturns) {
  Pair pair(GetParam());
  const RegionInfo from = pair.a.allocate(GetParam().memory, 256);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 256);
  for (const std::uint64_t size : kInlineSizes) {
    SCOPED_TRACE(size);
    pair.a.fill(from, 0, size, 5);
    expect_posted(pair.b.post_receive(pair.qb, {1, slice(to, 0, 256)}));
    const Request request = send(2, unregistered(from, 0, size)).with(IBV_SEND_INLINE);
    expect_posted(pair.a.post_send(pair.qa, request));
    pair.a.set(from, 0, 256, 0xFF);
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_SEND, pair.qa);
    expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 1, size, pair.qb);
    EXPECT_EQ(pair.b.mismatch(to, 0, size, 5), -1);
  }
}

TEST_P(RcInline, WriteTakesTheDataBeforeThePostReturns) {
  Pair pair(GetParam());
  const RegionInfo from = pair.a.allocate(GetParam().memory, 256);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 512);
  for (const std::uint64_t size : kInlineSizes) {
    SCOPED_TRACE(size);
    pair.a.fill(from, 0, size, 6);
    pair.b.set(to, 0, 512, 0x11);
    const Request request = write(2, unregistered(from, 0, size), to, 3).with(IBV_SEND_INLINE);
    expect_posted(pair.a.post_send(pair.qa, request));
    pair.a.set(from, 0, 256, 0xFF);
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_RDMA_WRITE, pair.qa);
    EXPECT_EQ(pair.b.mismatch(to, 3, size, 6), -1);
    expect_untouched(pair.b, to, 3 + size, 64, 0x11);
  }
}

TEST_P(RcInline, GathersFromSeveralPieces) {
  // IBTA 10.7.3: in the order of the list.
  Pair pair(GetParam());
  const RegionInfo from = pair.a.allocate(GetParam().memory, 1024);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 256);
  pair.a.fill(from, 0, 1024, 7);
  SliceList pieces;
  for (std::uint64_t i = 0; i < 16; ++i) pieces.add(unregistered(from, i * 33, (i * 5) % 19));
  const auto expected = gathered(pair.a, from, pieces);
  expect_posted(pair.b.post_receive(pair.qb, {1, slice(to, 0, 256)}));
  expect_posted(pair.a.post_send(pair.qa, send(2, pieces).with(IBV_SEND_INLINE)));
  pair.a.poll_sends(pair.qa, 1);
  expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 1, expected.size(), pair.qb);
  EXPECT_EQ(pair.b.peek(to, 0, expected.size()), expected);
}

TEST_P(RcInline, MoreThanGrantedIsRefusedAndTheQueuePairLives) {
  // An immediate error (IBTA 10.10.2).
  Pair pair(GetParam());
  const RegionInfo from = pair.a.allocate(GetParam().memory, 64_KiB);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 64_KiB);
  const std::uint64_t too_much = pair.qa.cap.max_inline_data + 1;
  const Posted posted =
      pair.a.post_send(pair.qa, write(1, slice(from, 0, too_much), to).with(IBV_SEND_INLINE));
  EXPECT_EQ(posted.error, EINVAL);
  EXPECT_EQ(posted.bad, 0);
  expect_posted(pair.a.post_send(pair.qa, write(2, slice(from, 0, 8), to).with(IBV_SEND_INLINE)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_RDMA_WRITE, pair.qa);
}

}  // namespace
}  // namespace verbatim::harness
