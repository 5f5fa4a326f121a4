// SPDX-License-Identifier: BSD-2-Clause
//
// SEND and SEND_WITH_IMM over RC (IBTA 9.4.1): whole, in order, into the receives as they were
// posted.
#include "tests/support/expect.hpp"

namespace verbatim::harness {
namespace {

class RcSend : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcSend, on_every_device(each_way_and_loopback()));

class RcSendTwoEnds : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcSendTwoEnds, on_every_device(each_way()));

constexpr std::uint64_t kAround = 64;

void send_one(Pair& pair, const RegionInfo& from, const RegionInfo& to, std::uint64_t size,
              std::uint64_t round) {
  SCOPED_TRACE(testing::Message() << size << " bytes");
  // Neither end of the copy is aligned, and each in its own way.
  const std::uint64_t source = round % 7;
  const std::uint64_t target = kAround + round % 5;
  const auto seed = static_cast<std::uint32_t>(round + 1);
  pair.a.fill(from, source, size, seed);
  pair.b.set(to, 0, target + size + kAround, 0xEE);
  expect_posted(pair.b.post_receive(pair.qb, {1000 + round, slice(to, target, size)}));
  expect_posted(pair.a.post_send(pair.qa, send(round, slice(from, source, size))));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], round, IBV_WC_SEND, pair.qa);
  expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 1000 + round, size, pair.qb);
  EXPECT_EQ(pair.b.mismatch(to, target, size, seed), -1);
  expect_untouched(pair.b, to, 0, target, 0xEE);
  expect_untouched(pair.b, to, target + size, kAround, 0xEE);
}

TEST_P(RcSend, ArrivesWholeAtEverySize) {
  Pair pair(GetParam());
  const RegionInfo from = pair.a.allocate(GetParam().memory, 2_MiB);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 2_MiB);
  std::uint64_t round = 0;
  for (const std::uint64_t size : kSizes) send_one(pair, from, to, size, round++);
}

TEST_P(RcSend, Arrives16MiBWhole) {
  Pair pair(GetParam());
  const RegionInfo from = pair.a.allocate(GetParam().memory, kLargeSize + 4096);
  const RegionInfo to = pair.b.allocate(GetParam().memory, kLargeSize + 4096);
  send_one(pair, from, to, kLargeSize, 3);
}

TEST_P(RcSend, WithoutAnySgeCarriesNothingButArrives) {
  Pair pair(GetParam());
  expect_posted(pair.b.post_receive(pair.qb, receive(2)));
  expect_posted(pair.a.post_send(pair.qa, send(1, {})));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_SEND, pair.qa);
  expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 2, 0, pair.qb);
}

TEST_P(RcSend, ImmediateDataArrivesInNetworkOrder) {
  Pair pair(GetParam());
  const RegionInfo memory = pair.a.allocate(GetParam().memory, 128_KiB);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 128_KiB);
  std::uint32_t imm = 0xC0FFEE01;
  for (const std::uint64_t size :
       {std::uint64_t{0}, std::uint64_t{8}, std::uint64_t{57}, 100_KiB}) {
    SCOPED_TRACE(size);
    pair.a.fill(memory, 0, size, imm);
    expect_posted(pair.b.post_receive(pair.qb, {imm, slice(to, 0, 128_KiB)}));
    expect_posted(pair.a.post_send(pair.qa, send(7, slice(memory, 0, size)).with_imm(imm)));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 7, IBV_WC_SEND, pair.qa);
    const ibv_wc wc = pair.b.poll_receives(pair.qb, 1)[0];
    expect_wc(wc, imm, IBV_WC_RECV, pair.qb);
    EXPECT_EQ(wc.byte_len, size);
    EXPECT_NE(wc.wc_flags & IBV_WC_WITH_IMM, 0u);
    EXPECT_EQ(ntohl(wc.imm_data), imm);
    EXPECT_EQ(pair.b.mismatch(to, 0, size, imm), -1);
    imm += 0x01020304;
  }
}

TEST_P(RcSend, ShorterThanTheReceiveLeavesTheRestUntouched) {
  Pair pair(GetParam());
  const RegionInfo from = pair.a.allocate(GetParam().memory, 8_KiB);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 8_KiB);
  for (const std::uint64_t size : {3, 100, 5000}) {
    pair.b.set(to, 0, 8_KiB, 0xAA);
    pair.a.fill(from, 0, size, 9);
    expect_posted(pair.b.post_receive(pair.qb, {1, slice(to, 0, 8_KiB)}));
    expect_posted(pair.a.post_send(pair.qa, send(1, slice(from, 0, size))));
    pair.a.poll_sends(pair.qa, 1);
    expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 1, size, pair.qb);
    EXPECT_EQ(pair.b.mismatch(to, 0, size, 9), -1);
    expect_untouched(pair.b, to, size, 8_KiB - size, 0xAA);
  }
}

/// Sixteen pieces of odd lengths, one of them empty, with gaps between them; `scale` stretches
/// them.
SliceList odd_pieces(const RegionInfo& region, std::uint64_t scale, std::uint64_t turn) {
  constexpr std::uint64_t kLengths[16] = {1, 3, 7, 0, 13, 55, 2, 31, 64, 5, 9, 17, 129, 1, 23, 11};
  SliceList pieces;
  std::uint64_t offset = 1;
  for (std::size_t i = 0; i < 16; ++i) {
    const std::uint64_t length = kLengths[(i + turn) % 16] * scale;
    pieces.add(slice(region, offset, length));
    offset += length + 1 + i % 3;
  }
  return pieces;
}

TEST_P(RcSend, GathersAndScattersSixteenOddPieces) {
  Pair pair(GetParam());
  const RegionInfo from = pair.a.allocate(GetParam().memory, 1_MiB);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 1_MiB);
  pair.a.fill(from, 0, 1_MiB, 1);
  for (const std::uint64_t scale : {1, 3, 11, 1001}) {
    SCOPED_TRACE(scale);
    pair.b.set(to, 0, 1_MiB, 0);
    const SliceList source = odd_pieces(from, scale, 0);
    const SliceList target = odd_pieces(to, scale, 5);  // the same sum, cut elsewhere
    expect_posted(pair.b.post_receive(pair.qb, {1, target}));
    expect_posted(pair.a.post_send(pair.qa, send(2, source)));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_SEND, pair.qa);
    expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 1, source.bytes(), pair.qb);
    EXPECT_EQ(gathered(pair.a, from, source), gathered(pair.b, to, target));
    expect_untouched(pair.b, to, target.at[0].offset + target.at[0].length, 1, 0);
  }
}

TEST_P(RcSend, FillsTheReceiveSgesInTheirOrder) {
  Pair pair(GetParam());
  const RegionInfo from = pair.a.allocate(GetParam().memory, 64);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 64);
  pair.a.fill(from, 0, 64, 4);
  // The second half of the message lies first in memory; the last SGE gets nothing.
  const SliceList target{slice(to, 20, 10), slice(to, 0, 10), slice(to, 40, 10)};
  expect_posted(pair.b.post_receive(pair.qb, {1, target}));
  expect_posted(pair.a.post_send(pair.qa, send(2, slice(from, 0, 15))));
  pair.a.poll_sends(pair.qa, 1);
  expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 1, 15, pair.qb);
  const auto sent = pair.a.peek(from, 0, 15);
  auto found = pair.b.peek(to, 20, 10);
  const auto second = pair.b.peek(to, 0, 5);
  found.insert(found.end(), second.begin(), second.end());
  EXPECT_EQ(found, sent);
  expect_untouched(pair.b, to, 5, 5, 0);
  expect_untouched(pair.b, to, 40, 10, 0);
}

TEST_P(RcSend, PassesOverReceiveSgesOfNoBytes) {
  Pair pair(GetParam());
  const RegionInfo from = pair.a.allocate(GetParam().memory, 64);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 64);
  pair.a.fill(from, 0, 64, 4);
  const SliceList target{slice(to, 50, 0), slice(to, 0, 10), slice(to, 60, 0), slice(to, 10, 10)};
  expect_posted(pair.b.post_receive(pair.qb, {1, target}));
  expect_posted(pair.a.post_send(pair.qa, send(2, slice(from, 0, 15))));
  pair.a.poll_sends(pair.qa, 1);
  expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 1, 15, pair.qb);
  EXPECT_EQ(pair.b.peek(to, 0, 15), pair.a.peek(from, 0, 15));
  expect_untouched(pair.b, to, 15, 49, 0);
}

TEST_P(RcSend, ManyMessagesTakeTheReceivesInTheirOrder) {
  constexpr std::uint32_t kBatch = 100;
  Pair pair(GetParam());
  const RegionInfo from = pair.a.allocate(GetParam().memory, kBatch * 256);
  const RegionInfo to = pair.b.allocate(GetParam().memory, kBatch * 256);
  for (std::uint32_t round = 0; round < 20; ++round) {
    std::vector<Receive> receives;
    std::vector<Request> sends;
    for (std::uint32_t i = 0; i < kBatch; ++i) {
      receives.push_back({round * kBatch + i, slice(to, i * 256, 256)});
      sends.push_back(send(i, slice(from, i * 256, (round + i * 3) % 257)));
    }
    pair.a.fill(from, 0, kBatch * 256, round);
    expect_posted(pair.b.post_receive(pair.qb, receives));
    expect_posted(pair.a.post_send(pair.qa, sends));
    const auto sent = pair.a.poll_sends(pair.qa, kBatch);
    const auto got = pair.b.poll_receives(pair.qb, kBatch);
    for (std::uint32_t i = 0; i < kBatch; ++i) {
      expect_wc(sent[i], i, IBV_WC_SEND, pair.qa);
      expect_receive(got[i], round * kBatch + i, (round + i * 3) % 257, pair.qb);
      ASSERT_EQ(pair.b.peek(to, i * 256, got[i].byte_len),
                pair.a.peek(from, i * 256, got[i].byte_len));
    }
  }
}

TEST_P(RcSend, PostedBeforeTheReceivesTakesThemInTheOrderOfPosting) {
  Pair pair(GetParam());
  const RegionInfo from = pair.a.allocate(GetParam().memory, 16_KiB);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 64_KiB);
  pair.a.fill(from, 0, 16_KiB, 5);
  const std::vector<Request> sends = {
      send(0, slice(from, 0, 8)),
      send(1, slice(from, 100, 56)).with(IBV_SEND_INLINE),
      send(2, {}),
      send(3, slice(from, 200, 20)).with_imm(77),
      send(4, {slice(from, 300, 8), slice(from, 400, 9)}),
      send(5, slice(from, 500, 57)),
      send(6, slice(from, 600, 1)).with(IBV_SEND_INLINE | IBV_SEND_SOLICITED),
      send(7, slice(from, 700, 3000)),
      send(8, slice(from, 5000, 56))};
  expect_posted(pair.a.post_send(pair.qa, sends));
  EXPECT_TRUE(pair.a.poll_once(pair.qa.send_cq, 1).empty());
  std::uint32_t next = 0;
  for (const std::uint32_t count : {1, 3, 5}) {
    std::vector<Receive> receives;
    for (std::uint32_t i = next; i < next + count; ++i)
      receives.push_back({i, slice(to, i * 4_KiB, 4_KiB)});
    expect_posted(pair.b.post_receive(pair.qb, receives));
    const auto sent = pair.a.poll_sends(pair.qa, count);
    const auto got = pair.b.poll_receives(pair.qb, count);
    for (std::uint32_t i = 0; i < count; ++i, ++next) {
      SCOPED_TRACE(next);
      expect_wc(sent[i], next, IBV_WC_SEND, pair.qa);
      expect_wc(got[i], next, IBV_WC_RECV, pair.qb);
      ASSERT_EQ(got[i].byte_len, sends[next].from.bytes());
      EXPECT_EQ((got[i].wc_flags & IBV_WC_WITH_IMM) != 0, next == 3);
      if (next == 3) {
        EXPECT_EQ(ntohl(got[i].imm_data), 77u);
      }
      EXPECT_EQ(pair.b.peek(to, next * 4_KiB, got[i].byte_len),
                gathered(pair.a, from, sends[next].from));
    }
  }
}

TEST_P(RcSendTwoEnds, FlowsBothWaysAtOnce) {
  Pair pair(GetParam());
  const RegionInfo at_a = pair.a.allocate(GetParam().memory, 1_MiB);
  const RegionInfo at_b = pair.b.allocate(GetParam().memory, 1_MiB);
  for (std::uint32_t round = 0; round < 50; ++round) {
    const std::uint64_t size = round % 2 == 0 ? 24 : 300_KiB;
    pair.a.fill(at_a, 0, size, round);
    pair.b.fill(at_b, 0, size, round + 77);
    expect_posted(pair.a.post_receive(pair.qa, {1, slice(at_a, 512_KiB, size)}));
    expect_posted(pair.b.post_receive(pair.qb, {2, slice(at_b, 512_KiB, size)}));
    expect_posted(pair.a.post_send(pair.qa, send(3, slice(at_a, 0, size))));
    expect_posted(pair.b.post_send(pair.qb, send(4, slice(at_b, 0, size))));
    expect_receive(pair.a.poll_receives(pair.qa, 1)[0], 1, size, pair.qa);
    expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 2, size, pair.qb);
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 3, IBV_WC_SEND, pair.qa);
    expect_wc(pair.b.poll_sends(pair.qb, 1)[0], 4, IBV_WC_SEND, pair.qb);
    EXPECT_EQ(pair.a.mismatch(at_a, 512_KiB, size, round + 77), -1);
    EXPECT_EQ(pair.b.mismatch(at_b, 512_KiB, size, round), -1);
  }
}

}  // namespace
}  // namespace verbatim::harness
