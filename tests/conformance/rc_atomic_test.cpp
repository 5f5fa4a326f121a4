// SPDX-License-Identifier: BSD-2-Clause
//
// Compare-and-swap and fetch-and-add over RC (IBTA 9.4.5).
#include <future>

#include "tests/support/expect.hpp"
#include "tests/support/scale.hpp"

namespace verbatim::harness {
namespace {

class RcAtomic : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcAtomic, on_every_device(each_way_and_loopback()));

class RcAtomicTwoEnds : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcAtomicTwoEnds, on_every_device(each_way()));

constexpr std::uint64_t kBig = 0xFEDCBA9876543210;

TEST_P(RcAtomic, FetchAddAddsAndReturnsTheOldValue) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 64);
  pair.b.store(remote, 16, kBig);
  std::uint64_t value = kBig;
  for (const std::uint64_t add : {std::uint64_t{1}, std::uint64_t{0}, kBig, ~std::uint64_t{0}}) {
    expect_posted(pair.a.post_send(pair.qa, fetch_add(add, slice(local, 8, 8), remote, 16, add)));
    const ibv_wc wc = pair.a.poll_sends(pair.qa, 1)[0];
    expect_wc(wc, add, IBV_WC_FETCH_ADD, pair.qa);
    EXPECT_EQ(wc.byte_len, 8u);
    EXPECT_EQ(pair.a.load(local, 8), value);
    value += add;
    EXPECT_EQ(pair.b.load(remote, 16), value);
  }
  EXPECT_EQ(pair.b.load(remote, 8), 0u);
  EXPECT_EQ(pair.b.load(remote, 24), 0u);
  EXPECT_EQ(pair.a.load(local, 0), 0u);
  EXPECT_EQ(pair.a.load(local, 16), 0u);
}

TEST_P(RcAtomic, CompareSwapSwapsOnlyWhatCompares) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 64);
  pair.b.store(remote, 8, kBig);
  expect_posted(
      pair.a.post_send(pair.qa, compare_swap(1, slice(local, 0, 8), remote, 8, kBig, 77)));
  ibv_wc wc = pair.a.poll_sends(pair.qa, 1)[0];
  expect_wc(wc, 1, IBV_WC_COMP_SWAP, pair.qa);
  EXPECT_EQ(wc.byte_len, 8u);
  EXPECT_EQ(pair.a.load(local, 0), kBig);
  EXPECT_EQ(pair.b.load(remote, 8), 77u);
  // What differs in one bit only stays.
  expect_posted(
      pair.a.post_send(pair.qa, compare_swap(2, slice(local, 0, 8), remote, 8, 76, kBig)));
  wc = pair.a.poll_sends(pair.qa, 1)[0];
  expect_wc(wc, 2, IBV_WC_COMP_SWAP, pair.qa);
  EXPECT_EQ(pair.a.load(local, 0), 77u);
  EXPECT_EQ(pair.b.load(remote, 8), 77u);
}

TEST_P(RcAtomic, AListOfFetchAddsReturnsEveryValueInTurn) {
  constexpr std::uint64_t kCount = 100;
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, kCount * 8);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 64);
  std::vector<Request> list;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    list.push_back(fetch_add(i, slice(local, i * 8, 8), remote, 0, i));
  }
  expect_posted(pair.a.post_send(pair.qa, list));
  const auto done = pair.a.poll_sends(pair.qa, kCount);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    expect_wc(done[i], i, IBV_WC_FETCH_ADD, pair.qa);
    EXPECT_EQ(pair.a.load(local, i * 8), sum);
    sum += i;
  }
  EXPECT_EQ(pair.b.load(remote, 0), sum);
}

TEST_P(RcAtomicTwoEnds, AddsFromBothEndsAreAllCounted) {
  // `a` adds over the connection, `b` by a queue pair of its own to itself: to the same word.
  const auto adds = scaled_rounds<std::uint64_t>(2000, 200);
  Pair pair(GetParam());
  const RegionInfo at_a = pair.a.allocate(GetParam().memory, 64);
  const RegionInfo at_b = pair.b.allocate(GetParam().memory, 64);
  const QpInfo self = pair.b.create_qp();
  pair.b.connect(self, self);
  auto from_b = std::async(std::launch::async, [&] {
    return pair.b.call<&Endpoint::storm>(self.id, fetch_add(0, slice(at_b, 8, 8), at_b, 0, 1), 8u,
                                         adds);
  });
  const auto failures_a = pair.a.call<&Endpoint::storm>(
      pair.qa.id, fetch_add(0, slice(at_a, 8, 8), at_b, 0, 1 << 20), 8u, adds);
  const auto failures_b = from_b.get();
  EXPECT_TRUE(failures_a.empty()) << describe(failures_a);
  EXPECT_TRUE(failures_b.empty()) << describe(failures_b);
  // A storm may do a few more than enough, those that were in flight.
  const std::uint64_t sum = pair.b.load(at_b, 0);
  EXPECT_GE(sum >> 20, adds);
  EXPECT_LE(sum >> 20, adds + 8);
  EXPECT_GE(sum & 0xFFFFF, adds);
  EXPECT_LE(sum & 0xFFFFF, adds + 8);
}

TEST_P(RcAtomicTwoEnds, AMisalignedAddressIsAnInvalidRequest) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 64);
  expect_posted(pair.a.post_send(pair.qa, fetch_add(1, slice(local, 0, 8), remote, 4, 1)));
  expect_error(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_REM_INV_REQ_ERR, pair.qa);
  expect_untouched(pair.b, remote, 0, 64, 0);
}

}  // namespace
}  // namespace verbatim::harness
