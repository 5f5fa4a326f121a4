// SPDX-License-Identifier: BSD-2-Clause
//
// A process that sits in pause(2) is still a full target, as one with an adapter would be: whatever
// its application has posted and registered serves its peers without it.
#include "tests/support/expect.hpp"

namespace verbatim::harness {
namespace {

class RcSleeper : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcSleeper, between_processes());

constexpr std::uint32_t kReceives = 64;

/// Wakes the child whatever happens, so that a failed test ends in order.
class Asleep {
 public:
  explicit Asleep(Side& side) : side_(side) { side_.fall_asleep(); }
  ~Asleep() {
    EXPECT_TRUE(side_.child().is_paused()) << "the library woke its application";
    side_.wake_up();
  }
  Asleep(const Asleep&) = delete;
  Asleep& operator=(const Asleep&) = delete;

 private:
  Side& side_;
};

/// Everything one-sided, on all of both kinds of memory.
void expect_one_sided_traffic(Pair& pair, const RegionInfo& local, const RegionInfo& remote) {
  for (const std::uint64_t size :
       {std::uint64_t{1}, std::uint64_t{8}, std::uint64_t{100}, 4_KiB, 64_KiB, 1_MiB}) {
    SCOPED_TRACE(size);
    const auto seed = static_cast<std::uint32_t>(size);
    pair.a.fill(local, 0, size, seed);
    pair.a.set(local, 2_MiB, size, 0);
    expect_posted(pair.a.post_send(pair.qa, {write(1, slice(local, 0, size), remote),
                                             read(2, slice(local, 2_MiB, size), remote)}));
    const auto done = pair.a.poll_sends(pair.qa, 2);
    expect_wc(done[0], 1, IBV_WC_RDMA_WRITE, pair.qa);
    expect_wc(done[1], 2, IBV_WC_RDMA_READ, pair.qa);
    EXPECT_EQ(pair.a.mismatch(local, 2_MiB, size, seed), -1);
  }
  const std::uint64_t before = remote.size - 8;
  for (std::uint64_t i = 0; i < 10; ++i) {
    expect_posted(pair.a.post_send(pair.qa, fetch_add(i, slice(local, 0, 8), remote, before, 3)));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], i, IBV_WC_FETCH_ADD, pair.qa);
    EXPECT_EQ(pair.a.load(local, 0), 3 * i);
  }
  expect_posted(
      pair.a.post_send(pair.qa, compare_swap(9, slice(local, 0, 8), remote, before, 30, 0)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 9, IBV_WC_COMP_SWAP, pair.qa);
  EXPECT_EQ(pair.a.load(local, 0), 30u);
}

TEST_P(RcSleeper, IsWrittenReadAndCountedOn) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 4_MiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 2_MiB);
  {
    const Asleep asleep(pair.b);
    expect_one_sided_traffic(pair, local, remote);
  }
  EXPECT_EQ(pair.b.mismatch(remote, 0, 1_MiB, 1_MiB), -1);
}

TEST_P(RcSleeper, IsWrittenReadAndCountedOnAfterBothHaveTalked) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 4_MiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 2_MiB);
  expect_posted(pair.a.post_receive(pair.qa, receive(1, slice(local, 0, 8))));
  expect_posted(pair.b.post_send(pair.qb, send(1, slice(remote, 0, 8))));
  pair.a.poll_receives(pair.qa, 1);
  pair.b.poll_sends(pair.qb, 1);
  const Asleep asleep(pair.b);
  expect_one_sided_traffic(pair, local, remote);
}

TEST_P(RcSleeper, IsConnectedToByAPeerThatComesWhileItSleeps) {
  PairWish wish;
  wish.connected = false;
  Pair pair(GetParam(), wish);
  const RegionInfo local = pair.a.allocate(GetParam().memory, 4_MiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 2_MiB);
  pair.b.connect(pair.qb, pair.qa);
  expect_posted(pair.b.post_receive(pair.qb, receive(1, slice(remote, 0, 64))));
  {
    const Asleep asleep(pair.b);
    pair.a.connect(pair.qa, pair.qb);
    expect_one_sided_traffic(pair, local, remote);
    pair.a.fill(local, 0, 64, 5);
    expect_posted(pair.a.post_send(pair.qa, send(2, slice(local, 0, 64))));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_SEND, pair.qa);
  }
  expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 1, 64, pair.qb);
  EXPECT_EQ(pair.b.mismatch(remote, 0, 64, 5), -1);
}

TEST_P(RcSleeper, IsSentToAsFirstContactFromAQueuePairMadeWhileItSleeps) {
  // What `b` knows of `a` when it falls asleep is a number that nobody has connected yet.
  PairWish wish;
  wish.connected = false;
  Pair pair(GetParam(), wish);
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 64);
  pair.b.connect(pair.qb, pair.qa);
  expect_posted(pair.b.post_receive(pair.qb, receive(1, slice(remote, 0, 64))));
  pair.a.fill(local, 0, 8, 5);
  {
    const Asleep asleep(pair.b);
    pair.a.connect(pair.qa, pair.qb);
    expect_posted(pair.a.post_send(pair.qa, send(2, slice(local, 0, 8))));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 2, IBV_WC_SEND, pair.qa);
  }
  expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 1, 8, pair.qb);
  EXPECT_EQ(pair.b.mismatch(remote, 0, 8, 5), -1);
}

/// As many as it has receives, all of one size; then one too many.
void expect_receives_serve_the_sender(Setting setting, std::uint64_t size) {
  PairWish wish;
  wish.b.receive_depth = kReceives;
  wish.link_b.min_rnr_timer = 1;
  wish.link_a.rnr_retry = 2;
  Pair pair(setting, wish);
  const RegionInfo local = pair.a.allocate(setting.memory, size);
  const RegionInfo remote = pair.b.allocate(setting.memory, kReceives * size);
  std::vector<Receive> receives;
  for (std::uint32_t i = 0; i < kReceives; ++i) {
    receives.push_back(receive(i, slice(remote, i * size, size)));
  }
  expect_posted(pair.b.post_receive(pair.qb, receives));
  {
    const Asleep asleep(pair.b);
    for (std::uint32_t i = 0; i < kReceives; ++i) {
      pair.a.fill(local, 0, size, i);
      expect_posted(pair.a.post_send(pair.qa, send(i, slice(local, 0, size))));
      expect_wc(pair.a.poll_sends(pair.qa, 1)[0], i, IBV_WC_SEND, pair.qa);
    }
    pair.a.set(local, 0, size, 0xFF);
    expect_posted(pair.a.post_send(pair.qa, send(kReceives, slice(local, 0, size))));
    expect_error(pair.a.poll_sends(pair.qa, 1)[0], kReceives, IBV_WC_RNR_RETRY_EXC_ERR, pair.qa);
  }
  const auto got = pair.b.poll_receives(pair.qb, kReceives);
  for (std::uint32_t i = 0; i < kReceives; ++i) {
    expect_receive(got[i], i, size, pair.qb);
    EXPECT_EQ(pair.b.mismatch(remote, i * size, size, i), -1);
  }
}

TEST_P(RcSleeper, TakesAsManySmallSendsAsItHasReceives) {
  expect_receives_serve_the_sender(GetParam(), 8);
}
TEST_P(RcSleeper, TakesAsMany4KiBSendsAsItHasReceives) {
  expect_receives_serve_the_sender(GetParam(), 4_KiB);
}
TEST_P(RcSleeper, TakesAsMany1MiBSendsAsItHasReceives) {
  expect_receives_serve_the_sender(GetParam(), 1_MiB);
}

TEST_P(RcSleeper, TakesOneListOfAsManySendsAsItHasReceives) {
  PairWish wish;
  wish.b.receive_depth = kReceives;
  Pair pair(GetParam(), wish);
  const RegionInfo local = pair.a.allocate(GetParam().memory, kReceives * 8_KiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, kReceives * 8_KiB);
  pair.a.fill(local, 0, kReceives * 8_KiB, 1);
  std::vector<Receive> receives;
  std::vector<Request> sends;
  for (std::uint32_t i = 0; i < kReceives; ++i) {
    // Two SGEs each, so that a message is cut where the sender cannot see it.
    receives.push_back(
        receive(i, {slice(remote, i * 8_KiB, 100), slice(remote, i * 8_KiB + 100, 8_KiB - 100)}));
    const std::uint64_t size = i % 2 == 0 ? 8_KiB : 300;
    const Request request = i % 5 == 3 ? send(i, slice(local, i * 8_KiB, size)).with_imm(i)
                                       : send(i, slice(local, i * 8_KiB, size));
    sends.push_back(i + 1 == kReceives ? request : request.unsignaled());
  }
  expect_posted(pair.b.post_receive(pair.qb, receives));
  {
    const Asleep asleep(pair.b);
    expect_posted(pair.a.post_send(pair.qa, sends));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], kReceives - 1, IBV_WC_SEND, pair.qa);
  }
  const auto got = pair.b.poll_receives(pair.qb, kReceives);
  for (std::uint32_t i = 0; i < kReceives; ++i) {
    EXPECT_EQ(got[i].byte_len, i % 2 == 0 ? 8_KiB : 300);
    EXPECT_EQ((got[i].wc_flags & IBV_WC_WITH_IMM) != 0, i % 5 == 3);
    EXPECT_EQ(pair.b.peek(remote, i * 8_KiB, got[i].byte_len),
              pair.a.peek(local, i * 8_KiB, got[i].byte_len));
  }
}

// Small ones wait in their slots, the others go to the buffers while nobody polls: in whatever
// order that happens, completions come in the order of the receives, each over its own bytes.
TEST_P(RcSleeper, FindsAMixOfSizesInOrderWhenItWakes) {
  constexpr std::uint64_t kSizes[] = {1_MiB, 8, 4_KiB, 100'000, 0, 33_KiB, 56, 57};
  constexpr std::uint64_t kMost = 1_MiB;
  PairWish wish;
  wish.b.receive_depth = kReceives;
  Pair pair(GetParam(), wish);
  const RegionInfo local = pair.a.allocate(GetParam().memory, kMost + kReceives);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, kReceives * kMost);
  pair.a.fill(local, 0, kMost + kReceives, 7);
  std::vector<Receive> receives;
  std::vector<Request> sends;
  for (std::uint32_t i = 0; i < kReceives; ++i) {
    receives.push_back(receive(i, slice(remote, i * kMost, kMost)));
    sends.push_back(send(i, slice(local, i, kSizes[i % std::size(kSizes)])));
  }
  expect_posted(pair.b.post_receive(pair.qb, receives));
  {
    const Asleep asleep(pair.b);
    expect_posted(pair.a.post_send(pair.qa, sends));
    const auto done = pair.a.poll_sends(pair.qa, kReceives);
    for (std::uint32_t i = 0; i < kReceives; ++i) expect_wc(done[i], i, IBV_WC_SEND, pair.qa);
  }
  const auto got = pair.b.poll_receives(pair.qb, kReceives);
  for (std::uint32_t i = 0; i < kReceives; ++i) {
    const std::uint64_t size = kSizes[i % std::size(kSizes)];
    expect_receive(got[i], i, static_cast<std::uint32_t>(size), pair.qb);
    EXPECT_EQ(pair.b.peek(remote, i * kMost, size), pair.a.peek(local, i, size)) << i;
  }
}

TEST_P(RcSleeper, WithoutAReceiveIsNotReady) {
  PairWish wish;
  wish.link_b.min_rnr_timer = 1;
  wish.link_a.rnr_retry = 3;
  Pair pair(GetParam(), wish);
  const RegionInfo local = pair.a.allocate(GetParam().memory, 1_MiB);
  const auto other = pair.add_qps({}, {});
  const Asleep asleep(pair.b);
  expect_posted(pair.a.post_send(pair.qa, send(1, slice(local, 0, 8))));
  expect_error(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_RNR_RETRY_EXC_ERR, pair.qa);
  expect_posted(pair.a.post_send(other.first, send(2, slice(local, 0, 1_MiB))));
  expect_error(pair.a.poll_sends(other.first, 1)[0], 2, IBV_WC_RNR_RETRY_EXC_ERR, other.first);
}

TEST_P(RcSleeper, RefusesWhatItsMemoryRegionsRefuse) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 64);
  const Asleep asleep(pair.b);
  expect_posted(pair.a.post_send(pair.qa, write(1, slice(local, 0, 8), remote, 57)));
  expect_error(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_REM_ACCESS_ERR, pair.qa);
}

TEST_P(RcSleeper, IsFlushedToWhenItsReceiveIsTooShort) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 4096);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 4096);
  expect_posted(pair.b.post_receive(
      pair.qb, std::vector{receive(1, slice(remote, 0, 8)), receive(2, slice(remote, 0, 8))}));
  {
    const Asleep asleep(pair.b);
    expect_posted(pair.a.post_send(pair.qa, send(1, slice(local, 0, 9))));
    expect_error(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_REM_INV_REQ_ERR, pair.qa);
  }
  const auto got = pair.b.poll_receives(pair.qb, 2);
  expect_error(got[0], 1, IBV_WC_LOC_LEN_ERR, pair.qb);
  expect_error(got[1], 2, IBV_WC_WR_FLUSH_ERR, pair.qb);
}

}  // namespace
}  // namespace verbatim::harness
