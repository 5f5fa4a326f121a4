// SPDX-License-Identifier: BSD-2-Clause
//
// RDMA WRITE, WRITE_WITH_IMM and READ over RC (IBTA 9.4.3, 9.4.4).
#include "tests/support/expect.hpp"

namespace verbatim::harness {
namespace {

class RcRdma : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcRdma, on_every_device(each_way_and_loopback()));

class RcRdmaTwoEnds : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcRdmaTwoEnds, on_every_device(each_way()));

constexpr std::uint64_t kGuard = 64;

/// Writes, then reads back to another place of the writer's memory.
void write_and_read_back(Pair& pair, const RegionInfo& local, const RegionInfo& remote,
                         std::uint64_t size, std::uint64_t round) {
  SCOPED_TRACE(testing::Message() << size << " bytes");
  const std::uint64_t source = round % 7;
  const std::uint64_t target = kGuard + round % 5;
  const std::uint64_t back = local.size / 2 + round % 3;
  const auto seed = static_cast<std::uint32_t>(round + 1);
  pair.a.fill(local, source, size, seed);
  pair.b.set(remote, 0, target + size + kGuard, 0xEE);

  expect_posted(
      pair.a.post_send(pair.qa, write(round, slice(local, source, size), remote, target)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], round, IBV_WC_RDMA_WRITE, pair.qa);
  EXPECT_EQ(pair.b.mismatch(remote, target, size, seed), -1);
  expect_untouched(pair.b, remote, 0, target, 0xEE);
  expect_untouched(pair.b, remote, target + size, kGuard, 0xEE);

  pair.a.set(local, back, size + kGuard, 0xDD);
  expect_posted(pair.a.post_send(pair.qa, read(round, slice(local, back, size), remote, target)));
  const ibv_wc wc = pair.a.poll_sends(pair.qa, 1)[0];
  expect_wc(wc, round, IBV_WC_RDMA_READ, pair.qa);
  EXPECT_EQ(wc.byte_len, size);
  EXPECT_EQ(pair.a.mismatch(local, back, size, seed), -1);
  expect_untouched(pair.a, local, back + size, kGuard, 0xDD);
}

TEST_P(RcRdma, WritesAndReadsWholeAtEverySize) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 4_MiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 2_MiB);
  std::uint64_t round = 0;
  for (const std::uint64_t size : kSizes) write_and_read_back(pair, local, remote, size, round++);
}

TEST_P(RcRdma, WritesAndReads16MiBWhole) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 2 * kLargeSize + 8192);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, kLargeSize + 4096);
  write_and_read_back(pair, local, remote, kLargeSize, 5);
}

TEST_P(RcRdma, GathersForAWriteAndScattersAReadOverSixteenPieces) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 1_MiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 1_MiB);
  for (const std::uint64_t scale : {1, 9, 1501}) {
    SCOPED_TRACE(scale);
    pair.a.fill(local, 0, 512_KiB, 2);
    pair.a.set(local, 512_KiB, 512_KiB, 0);
    SliceList source;
    SliceList target;
    for (std::uint64_t i = 0, at = 0; i < 16; ++i) {
      const std::uint64_t length = (1 + (i * 7) % 16) * scale;  // a permutation of 1 to 16
      const std::uint64_t other = (1 + (i * 5) % 16) * scale;
      source.add(slice(local, at + i % 3, length));
      target.add(slice(local, 512_KiB + at + i % 2, other));
      at += 17 * scale + 3;
    }
    const std::uint64_t bytes = source.bytes();
    ASSERT_EQ(bytes, target.bytes());
    expect_posted(pair.a.post_send(pair.qa, write(1, source, remote, 5)));
    expect_posted(pair.a.post_send(pair.qa, read(2, target, remote, 5)));
    const auto done = pair.a.poll_sends(pair.qa, 2);
    expect_wc(done[0], 1, IBV_WC_RDMA_WRITE, pair.qa);
    expect_wc(done[1], 2, IBV_WC_RDMA_READ, pair.qa);
    EXPECT_EQ(done[1].byte_len, bytes);
    const auto expected = gathered(pair.a, local, source);
    EXPECT_EQ(pair.b.peek(remote, 5, bytes), expected);
    EXPECT_EQ(gathered(pair.a, local, target), expected);
  }
}

TEST_P(RcRdma, WriteWithImmediateConsumesAReceiveAndTouchesNotItsMemory) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 128_KiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 256_KiB);
  for (const std::uint64_t size :
       {std::uint64_t{0}, std::uint64_t{8}, std::uint64_t{300}, 100_KiB}) {
    SCOPED_TRACE(size);
    pair.a.fill(local, 0, size, 8);
    pair.b.set(remote, 0, 256_KiB, 0x22);
    expect_posted(pair.b.post_receive(pair.qb, {5, slice(remote, 200_KiB, 64)}));
    expect_posted(
        pair.a.post_send(pair.qa, write(6, slice(local, 0, size), remote, 1).with_imm(0x01020304)));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 6, IBV_WC_RDMA_WRITE, pair.qa);
    const ibv_wc wc = pair.b.poll_receives(pair.qb, 1)[0];
    expect_wc(wc, 5, IBV_WC_RECV_RDMA_WITH_IMM, pair.qb);
    EXPECT_EQ(wc.byte_len, size);
    EXPECT_NE(wc.wc_flags & IBV_WC_WITH_IMM, 0u);
    EXPECT_EQ(ntohl(wc.imm_data), 0x01020304u);
    EXPECT_EQ(pair.b.mismatch(remote, 1, size, 8), -1);
    expect_untouched(pair.b, remote, 200_KiB, 64, 0x22);
  }
}

TEST_P(RcRdma, WriteWithImmediateTakesAReceiveWithoutSges) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 4096);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 4096);
  pair.a.fill(local, 0, 4096, 1);
  expect_posted(pair.b.post_receive(pair.qb, receive(9)));
  expect_posted(pair.a.post_send(pair.qa, write(1, slice(local, 0, 4096), remote).with_imm(3)));
  pair.a.poll_sends(pair.qa, 1);
  expect_wc(pair.b.poll_receives(pair.qb, 1)[0], 9, IBV_WC_RECV_RDMA_WITH_IMM, pair.qb);
  EXPECT_EQ(pair.b.mismatch(remote, 0, 4096, 1), -1);
}

TEST_P(RcRdma, ReadLeavesTheTargetAsItIs) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64_KiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 64_KiB, IBV_ACCESS_REMOTE_READ);
  pair.b.fill(remote, 0, 64_KiB, 12);
  expect_posted(pair.a.post_send(pair.qa, read(1, slice(local, 0, 64_KiB), remote)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_RDMA_READ, pair.qa);
  EXPECT_EQ(pair.a.mismatch(local, 0, 64_KiB, 12), -1);
  EXPECT_EQ(pair.b.mismatch(remote, 0, 64_KiB, 12), -1);
}

TEST_P(RcRdmaTwoEnds, AWriteIsSeenByWhoOnlyWatchesItsMemory) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 64);
  for (std::uint64_t value = 1; value <= 50; ++value) {
    pair.a.store(local, 0, value);
    expect_posted(pair.a.post_send(
        pair.qa, write(value, slice(local, 0, 8), remote, 8).with(IBV_SEND_INLINE)));
    pair.b.call<&Endpoint::await_word>(remote.id, 8u, value);
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], value, IBV_WC_RDMA_WRITE, pair.qa);
  }
}

TEST_P(RcRdma, PlacesWhatItsMemoryRegionsAllowAtBothEnds) {
  // A region over part of an allocation, its first and its last byte.
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 4096);
  const RegionInfo whole = pair.b.allocate(GetParam().memory, 64_KiB);
  const RegionInfo part = pair.b.register_part(whole, 5001, 3333);
  pair.a.fill(local, 0, 3333, 3);
  expect_posted(pair.a.post_send(pair.qa, write(1, slice(local, 0, 3333), part)));
  expect_posted(pair.a.post_send(pair.qa, write(2, slice(local, 0, 0), part, 3333)));
  const auto done = pair.a.poll_sends(pair.qa, 2);
  expect_wc(done[0], 1, IBV_WC_RDMA_WRITE, pair.qa);
  expect_wc(done[1], 2, IBV_WC_RDMA_WRITE, pair.qa);
  EXPECT_EQ(pair.b.mismatch(whole, 5001, 3333, 3), -1);
  expect_untouched(pair.b, whole, 5000, 1, 0);
  expect_untouched(pair.b, whole, 5001 + 3333, 1, 0);
}

}  // namespace
}  // namespace verbatim::harness
