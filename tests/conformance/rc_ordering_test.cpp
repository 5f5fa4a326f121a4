// SPDX-License-Identifier: BSD-2-Clause
//
// What the order of requests means for atomics and for what they return (IBTA 9.5, and the table of
// 10.8.3.3): they see what was posted before them, what is posted behind them sees them, and what
// they fetched is there for a request with a fence.
#include "tests/support/expect.hpp"

namespace verbatim::harness {
namespace {

class RcOrdering : public ::testing::TestWithParam<Setting> {
 protected:
  /// Bytes of the WRITE whose last eight the atomic is for.
  static constexpr std::uint64_t kWritten[] = {8, 64, 4000, 70'000};
  static constexpr std::uint64_t kResult = 128_KiB;  ///< in `local`: what the atomic fetched
  static constexpr std::uint64_t kSeen = 256_KiB;    ///< in `local`: what the READ brought

  Pair pair{GetParam()};
  const RegionInfo local = pair.a.allocate(GetParam().memory, 512_KiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 512_KiB);
};
RUN_OVER_SETTINGS(RcOrdering, on_every_device(each_way_and_loopback()));

TEST_P(RcOrdering, AnAtomicSeesTheWriteBeforeIt) {
  std::uint64_t value = 0x1000;
  for (const std::uint64_t size : kWritten) {
    SCOPED_TRACE(size);
    const std::uint64_t last = size - 8;
    for (int repeat = 0; repeat < 3; ++repeat) {
      pair.a.store(local, last, ++value);
      expect_posted(pair.a.post_send(
          pair.qa, {write(1, slice(local, 0, size), remote).unsignaled(),
                    fetch_add(2, slice(local, kResult, 8), remote, last, 1 << 20)}));
      expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_FETCH_ADD, pair.qa);
      EXPECT_EQ(pair.a.load(local, kResult), value);
      EXPECT_EQ(pair.b.load(remote, last), value + (1 << 20));

      pair.a.store(local, last, ++value);
      expect_posted(pair.a.post_send(
          pair.qa, {write(3, slice(local, 0, size), remote).unsignaled(),
                    compare_swap(4, slice(local, kResult, 8), remote, last, value, 77)}));
      expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 4, IBV_WC_COMP_SWAP, pair.qa);
      EXPECT_EQ(pair.a.load(local, kResult), value);
      EXPECT_EQ(pair.b.load(remote, last), 77u);
    }
  }
}

TEST_P(RcOrdering, AReadSeesTheAtomicBeforeItAndTheWriteBeforeThat) {
  std::uint64_t value = 0x2000;
  for (const std::uint64_t size : kWritten) {
    SCOPED_TRACE(size);
    const std::uint64_t last = size - 8;
    for (int repeat = 0; repeat < 3; ++repeat) {
      pair.a.fill(local, 0, last, static_cast<std::uint32_t>(++value));
      pair.a.store(local, last, value);
      expect_posted(pair.a.post_send(
          pair.qa, {write(1, slice(local, 0, size), remote).unsignaled(),
                    fetch_add(2, slice(local, kResult, 8), remote, last, 1 << 20).unsignaled(),
                    read(3, slice(local, kSeen, size), remote)}));
      expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 3, IBV_WC_RDMA_READ, pair.qa);
      EXPECT_EQ(pair.a.mismatch(local, kSeen, last, static_cast<std::uint32_t>(value)), -1);
      EXPECT_EQ(pair.a.load(local, kSeen + last), value + (1 << 20));
      EXPECT_EQ(pair.a.load(local, kResult), value);
    }
  }
}

TEST_P(RcOrdering, AFencedSendCarriesWhatTheAtomicBeforeItFetched) {
  for (std::uint64_t value = 100; value < 110; ++value) {
    pair.a.store(local, kResult, 0);
    pair.b.store(remote, 0, value);
    expect_posted(pair.b.post_receive(pair.qb, receive(1, slice(remote, kSeen, 8))));
    const Slice fetched = slice(local, kResult, 8);
    const Request atomic = value % 2 == 0 ? fetch_add(1, fetched, remote, 0, 1)
                                          : compare_swap(1, fetched, remote, 0, value, 0);
    expect_posted(
        pair.a.post_send(pair.qa, {atomic.unsignaled(), send(2, fetched).with(IBV_SEND_FENCE)}));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_SEND, pair.qa);
    expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 1, 8, pair.qb);
    EXPECT_EQ(pair.b.load(remote, kSeen), value);
  }
}

TEST_P(RcOrdering, AFencedWriteCarriesWhatTheAtomicBeforeItFetched) {
  for (std::uint64_t value = 200; value < 210; ++value) {
    pair.a.store(local, kResult, 0);
    pair.b.store(remote, 0, value);
    const Slice fetched = slice(local, kResult, 8);
    const Request atomic = value % 2 == 0 ? fetch_add(1, fetched, remote, 0, 1)
                                          : compare_swap(1, fetched, remote, 0, value, 0);
    expect_posted(pair.a.post_send(
        pair.qa, {atomic.unsignaled(), write(2, fetched, remote, kSeen).with(IBV_SEND_FENCE)}));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_RDMA_WRITE, pair.qa);
    EXPECT_EQ(pair.b.load(remote, kSeen), value);
  }
}

}  // namespace
}  // namespace verbatim::harness
