// SPDX-License-Identifier: BSD-2-Clause
//
// Which requests complete visibly, in which order, and what order means for memory (IBTA 10.7.3,
// 10.8.3.3).
#include "tests/support/expect.hpp"
#include "tests/support/scale.hpp"

namespace verbatim::harness {
namespace {

class RcCompletion : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcCompletion, on_every_device(each_way_and_loopback()));

class RcOrder : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcOrder, on_every_device(each_way_and_loopback()));

TEST_P(RcCompletion, OnlySignaledRequestsComplete) {
  // However few, the queue goes round.
  const auto requests = scaled_rounds<std::uint64_t>(1000, 4 * QpWish{}.send_depth);
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 4096);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 4096);
  std::uint64_t posted = 0;
  std::uint64_t signaled = 0;
  // Every eleventh asks for a completion; that one also ends the batch.
  while (posted < requests) {
    std::vector<Request> batch;
    for (int i = 0; i < 11; ++i, ++posted) {
      const Request request = posted % 3 == 0 ? read(posted, slice(local, 64, 64), remote)
                                              : write(posted, slice(local, 0, 32), remote);
      batch.push_back(i == 10 ? request : request.unsignaled());
    }
    expect_posted(pair.a.post_send(pair.qa, batch));
    const ibv_wc wc = pair.a.poll_sends(pair.qa, 1)[0];
    expect_wc(wc, posted - 1, (posted - 1) % 3 == 0 ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE,
              pair.qa);
    ++signaled;
  }
  EXPECT_EQ(signaled, posted / 11);
  EXPECT_TRUE(pair.a.poll_once(pair.qa.send_cq, 16).empty());
}

TEST_P(RcCompletion, UnsignaledSendsArriveAndOnlyTheReceiverIsTold) {
  constexpr std::uint32_t kSends = 64;
  Pair pair(GetParam());
  const RegionInfo from = pair.a.allocate(GetParam().memory, 4096);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 4096);
  for (std::uint32_t i = 0; i < kSends; ++i) {
    expect_posted(pair.b.post_receive(pair.qb, {i, slice(to, 0, 64)}));
    const Request request = send(i, slice(from, 0, 16));
    expect_posted(pair.a.post_send(pair.qa, i + 1 == kSends ? request : request.unsignaled()));
  }
  const auto got = pair.b.poll_receives(pair.qb, kSends);
  for (std::uint32_t i = 0; i < kSends; ++i) expect_receive(got[i], i, 16, pair.qb);
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], kSends - 1, IBV_WC_SEND, pair.qa);
  EXPECT_TRUE(pair.a.poll_once(pair.qa.send_cq, 16).empty());
}

TEST_P(RcCompletion, SqSigAllMakesEveryRequestComplete) {
  constexpr std::uint32_t kRequests = 50;
  PairWish wish;
  wish.a.signal_all = 1;
  Pair pair(GetParam(), wish);
  const RegionInfo local = pair.a.allocate(GetParam().memory, 4096);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 4096);
  std::vector<Request> list;
  for (std::uint32_t i = 0; i < kRequests; ++i) {
    list.push_back(write(i, slice(local, 0, 8), remote).unsignaled());
  }
  expect_posted(pair.a.post_send(pair.qa, list));
  const auto done = pair.a.poll_sends(pair.qa, kRequests);
  for (std::uint32_t i = 0; i < kRequests; ++i) {
    expect_wc(done[i], i, IBV_WC_RDMA_WRITE, pair.qa);
  }
}

TEST_P(RcCompletion, DifferentOperationsCompleteInTheOrderOfTheirPosts) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 1_MiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 1_MiB);
  for (std::uint64_t round = 0; round < 30; ++round) {
    expect_posted(pair.b.post_receive(
        pair.qb, std::vector<Receive>{{1, slice(remote, 0, 256_KiB)}, {2, {}}}));
    expect_posted(pair.a.post_send(
        pair.qa, {write(10, slice(local, 0, 256_KiB), remote, 256_KiB),
                  send(11, slice(local, 0, 100_KiB)), read(12, slice(local, 512_KiB, 64), remote),
                  fetch_add(13, slice(local, 600_KiB, 8), remote, 900_KiB, 1),
                  write(14, slice(local, 0, 1), remote, 256_KiB).with_imm(9),
                  compare_swap(15, slice(local, 600_KiB, 8), remote, 900_KiB, round + 1, round + 1),
                  write(16, slice(local, 0, 8), remote, 256_KiB).with(IBV_SEND_INLINE)}));
    const auto done = pair.a.poll_sends(pair.qa, 7);
    const ibv_wc_opcode opcodes[] = {IBV_WC_RDMA_WRITE, IBV_WC_SEND,       IBV_WC_RDMA_READ,
                                     IBV_WC_FETCH_ADD,  IBV_WC_RDMA_WRITE, IBV_WC_COMP_SWAP,
                                     IBV_WC_RDMA_WRITE};
    for (std::uint64_t i = 0; i < 7; ++i) expect_wc(done[i], 10 + i, opcodes[i], pair.qa);
    const auto got = pair.b.poll_receives(pair.qb, 2);
    expect_receive(got[0], 1, 100_KiB, pair.qb);
    expect_wc(got[1], 2, IBV_WC_RECV_RDMA_WITH_IMM, pair.qb);
    EXPECT_EQ(pair.a.load(local, 600_KiB), round + 1);
  }
}

TEST_P(RcCompletion, PollTakesNoMoreThanItIsAskedFor) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 64);
  std::vector<Request> list;
  for (std::uint32_t i = 0; i < 10; ++i) list.push_back(write(i, slice(local, 0, 8), remote));
  expect_posted(pair.a.post_send(pair.qa, list));
  std::vector<ibv_wc> all;
  ASSERT_TRUE(wait_until([&] {
    const auto some = pair.a.poll_once(pair.qa.send_cq, 3);
    EXPECT_LE(some.size(), 3u);
    all.insert(all.end(), some.begin(), some.end());
    return all.size() >= 10;
  }));
  EXPECT_EQ(all.size(), 10u);
  EXPECT_TRUE(pair.a.poll_once(pair.qa.send_cq, 16).empty());
}

TEST_P(RcOrder, AWriteIsThereWhenTheFollowingSendArrives) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 1_MiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 1_MiB);
  std::uint32_t round = 0;
  for (const std::uint64_t size : {8, 60, 4000, 70'000, 1'000'000}) {
    for (int repeat = 0; repeat < 5; ++repeat, ++round) {
      pair.a.fill(local, 0, size, round);
      expect_posted(pair.b.post_receive(pair.qb, receive(1)));
      expect_posted(pair.a.post_send(
          pair.qa, {write(1, slice(local, 0, size), remote).unsignaled(), send(2, {})}));
      // The receiver alone decides: the sender has not polled yet.
      expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 1, 0, pair.qb);
      EXPECT_EQ(pair.b.mismatch(remote, 0, size, round), -1);
      expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_SEND, pair.qa);
    }
  }
}

TEST_P(RcOrder, AReadSeesTheWriteBeforeIt) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 1_MiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 1_MiB);
  std::uint32_t round = 0;
  for (const std::uint64_t size : {8, 200, 5000, 500'000}) {
    for (int repeat = 0; repeat < 5; ++repeat, ++round) {
      pair.a.fill(local, 0, size, round);
      expect_posted(pair.a.post_send(pair.qa, {write(1, slice(local, 0, size), remote).unsignaled(),
                                               read(2, slice(local, 512_KiB, size), remote)}));
      expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_RDMA_READ, pair.qa);
      EXPECT_EQ(pair.a.mismatch(local, 512_KiB, size, round), -1);
    }
  }
}

TEST_P(RcOrder, OfManyWritesToOnePlaceTheLastOneStays) {
  constexpr std::uint64_t kWrites = 100;
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, kWrites * 8);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 64);
  std::vector<Request> list;
  for (std::uint64_t i = 0; i < kWrites; ++i) {
    pair.a.store(local, i * 8, i + 1);
    Request request = write(i, slice(local, i * 8, 8), remote);
    if (i % 2 == 0) request = request.with(IBV_SEND_INLINE);
    list.push_back(i + 1 == kWrites ? request : request.unsignaled());
  }
  expect_posted(pair.a.post_send(pair.qa, list));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], kWrites - 1, IBV_WC_RDMA_WRITE, pair.qa);
  EXPECT_EQ(pair.b.load(remote, 0), kWrites);
}

TEST_P(RcOrder, AFencedSendCarriesWhatTheReadBeforeItBrought) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 256_KiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 512_KiB);
  for (const std::uint64_t size : {8, 48, 3000, 200'000}) {
    SCOPED_TRACE(size);
    pair.a.set(local, 0, size, 0);
    pair.b.fill(remote, 0, size, 5);
    expect_posted(pair.b.post_receive(pair.qb, {1, slice(remote, 256_KiB, size)}));
    expect_posted(pair.a.post_send(pair.qa, {read(1, slice(local, 0, size), remote).unsignaled(),
                                             send(2, slice(local, 0, size)).with(IBV_SEND_FENCE)}));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_SEND, pair.qa);
    expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 1, size, pair.qb);
    EXPECT_EQ(pair.b.mismatch(remote, 256_KiB, size, 5), -1);
  }
}

}  // namespace
}  // namespace verbatim::harness
