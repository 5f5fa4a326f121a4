// SPDX-License-Identifier: BSD-2-Clause
//
// A deregistration that waits for a stopped process waits alone: everybody else is served
// meanwhile. And one in the middle of a large message takes the memory away from it.
#include <signal.h>

#include <atomic>
#include <chrono>
#include <future>

#include "tests/shm/peer_tier.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

using Clock = std::chrono::steady_clock;

class RcDeregWait : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcDeregWait, between_processes());

constexpr std::uint64_t kLong = 16_MiB;

TEST_P(RcDeregWait, ForAStoppedPeerKeepsNobodyFromAnother) {
  const AllowedLog says_why("was stopped in the middle of a copy");
  Pair pair(GetParam());
  const RegionInfo source = pair.b.allocate(GetParam().memory, kLong);
  const RegionInfo whole = pair.a.allocate(GetParam().memory, kLong);
  // Another peer, whose messages wake us, and whose requests our service thread answers.
  Side other(std::map<std::string, std::string>{});
  QpWish wish;
  wish.with_channel = 1;
  const QpInfo here = pair.a.create_qp(wish);
  const QpInfo there = other.create_qp();
  const RegionInfo inbox = pair.a.allocate(MemoryKind::kOrdinary, 4096);
  const RegionInfo outbox = other.allocate(MemoryKind::kOrdinary, 4096);
  pair.a.connect(here, there);
  other.connect(there, here);
  const auto wake_us = [&](std::uint64_t id) {
    expect_posted(pair.a.post_receive(here, receive(id, slice(inbox, 0, 64))));
    ASSERT_EQ(pair.a.call<&Endpoint::arm>(here.receive_cq, 0), 0);
    const auto start = Clock::now();
    expect_posted(other.post_send(there, send(id, slice(outbox, 0, 64))));
    ASSERT_EQ(pair.a.call<&Endpoint::take_event>(here.receive_cq, kDefaultWaitMs), here.receive_cq);
    EXPECT_LT(Clock::now() - start, std::chrono::milliseconds(1000));
    expect_wc(other.poll_sends(there, 1)[0], id, IBV_WC_SEND, there);
    expect_receive(pair.a.poll_receives(here, 1)[0], id, 64, here);
  };
  ASSERT_NO_FATAL_FAILURE(wake_us(1));

  bool busy = false;
  // Where our own thread copies, a stopped peer is in the middle of nothing that takes long.
  bool peer_copies = true;
  for (std::uint32_t round = 0; round < (peer_copies ? 20 : 3) && !busy; ++round) {
    SCOPED_TRACE(round);
    pair.a.set(whole, 0, kLong, 0);
    pair.b.set(source, 0, kLong, 0x99);
    const RegionInfo target = pair.a.register_part(whole, 0, kLong);
    auto storm = std::async(std::launch::async, [&, qp = pair.qb] {
      return pair.b.call<&Endpoint::storm>(qp.id, write(1, slice(source, 0, kLong), target), 8u,
                                           ~std::uint64_t{0});
    });
    ASSERT_TRUE(wait_until([&] { return pair.a.load(whole, 0) != 0; }));
    peer_copies = copies_itself(pair, target);
    pair.b.child().signal(SIGSTOP);
    ASSERT_TRUE(wait_until([&] { return pair.b.child().is_stopped(); }));
    std::atomic<bool> returned{false};
    const auto start = Clock::now();
    auto waiting = std::async(std::launch::async, [&] {
      const int error = pair.a.deregister(target);
      returned = true;
      return error;
    });
    // A stop between two copies leaves nothing to wait for.
    (void)waiting.wait_for(std::chrono::milliseconds(50));
    if (!returned) {
      ASSERT_NO_FATAL_FAILURE(wake_us(2));
      EXPECT_FALSE(returned) << "it was to be served while somebody waits";
    }
    const int error = waiting.get();
    busy = error == EBUSY;
    EXPECT_EQ(busy, Clock::now() - start > std::chrono::seconds(1));
    pair.b.child().signal(SIGCONT);
    ASSERT_EQ(busy ? pair.a.deregister(target) : error, 0);
    ASSERT_FALSE(storm.get().empty());
    pair.reconnect();
  }
  EXPECT_TRUE(busy || !peer_copies) << "the peer was never met in the middle of a copy";
}

class RcDeregUnderWay : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcDeregUnderWay, each_way_and_two_contexts());

constexpr std::uint32_t kReceivesHeld = 60;

struct Traffic {
  Side& requester;
  QpInfo qp;
  Request request;
};
std::future<std::vector<ibv_wc>> start(const Traffic& traffic) {
  return std::async(std::launch::async,
                    [&side = traffic.requester, qp = traffic.qp, request = traffic.request] {
                      return side.call<&Endpoint::storm>(qp.id, request, 4u, kForEver);
                    });
}

/// The requester's own memory goes: its own fault, that the other side hears nothing of.
TEST_P(RcDeregUnderWay, OfTheRequestersMemoryIsALocalFault) {
  Pair pair(GetParam());
  const RegionInfo whole = pair.a.allocate(GetParam().memory, kLong);
  const RegionInfo to = pair.b.allocate(GetParam().memory, kLong);
  pair.a.set(whole, 0, kLong, 0x99);
  for (std::uint32_t round = 0; round < 6; ++round) {
    const bool sends = round % 2 == 0;
    SCOPED_TRACE(sends ? "SEND" : "WRITE");
    const RegionInfo from = pair.a.register_part(whole, 0, kLong);
    pair.b.set(to, 0, kLong, 0);
    if (sends) {
      for (std::uint32_t i = 0; i < kReceivesHeld; ++i)
        expect_posted(pair.b.post_receive(pair.qb, receive(i, slice(to, 0, kLong))));
    }
    auto storm =
        start({pair.a, pair.qa,
               sends ? send(1, slice(from, 0, kLong)) : write(1, slice(from, 0, kLong), to)});
    ASSERT_TRUE(wait_until([&] { return pair.b.load(to, kLong - 8) != 0; }));
    ASSERT_EQ(pair.a.deregister(from), 0);
    const auto failures = storm.get();
    ASSERT_FALSE(failures.empty());
    expect_error(failures[0], 1, IBV_WC_LOC_PROT_ERR, pair.qa);
    for (std::size_t i = 1; i < failures.size(); ++i)
      expect_error(failures[i], 1, IBV_WC_WR_FLUSH_ERR, pair.qa);
    EXPECT_EQ(pair.a.state(pair.qa), IBV_QPS_ERR);
    EXPECT_EQ(pair.b.state(pair.qb), IBV_QPS_RTS);
    if (sends) {
      // Whole messages, then what never came whole.
      ASSERT_EQ(pair.b.to_state(pair.qb, IBV_QPS_ERR), 0);
      bool flushed = false;
      std::uint32_t i = 0;
      for (const ibv_wc& wc : pair.b.poll_receives(pair.qb, kReceivesHeld)) {
        flushed = flushed || wc.status != IBV_WC_SUCCESS;
        EXPECT_EQ(wc.wr_id, i++);
        EXPECT_EQ(wc.status, flushed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
      }
      EXPECT_TRUE(flushed);
    }
    pair.reconnect();
  }
}

#ifdef VBT_UNDER_THREAD_SANITIZER
// A look at memory that the poll of another thread fills is a race to it, as it is for an adapter.
constexpr bool kMayTakeMeanwhile = false;
#else
constexpr bool kMayTakeMeanwhile = true;
#endif

/// The memory of a posted receive goes: the message that is under way to it ends there.
TEST_P(RcDeregUnderWay, OfAReceiveEndsTheMessageAtBothEnds) {
  Pair pair(GetParam());
  const RegionInfo from = pair.b.allocate(GetParam().memory, kLong);
  const RegionInfo whole = pair.a.allocate(GetParam().memory, kLong);
  pair.b.set(from, 0, kLong, 0x99);
  for (std::uint32_t round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    const RegionInfo to = pair.a.register_part(whole, 0, kLong);
    pair.a.set(whole, 0, kLong, 0);
    for (std::uint32_t i = 0; i < kReceivesHeld; ++i)
      expect_posted(pair.a.post_receive(pair.qa, receive(i, slice(to, 0, kLong))));
    auto storm = start({pair.b, pair.qb, send(1, slice(from, 0, kLong))});
    const auto take_all = [&] { return pair.a.poll_receives(pair.qa, kReceivesHeld); };
    // Somebody takes them all the while, or nobody does: other ways.
    std::future<std::vector<ibv_wc>> taken;
    if (kMayTakeMeanwhile && round % 2 == 0) taken = std::async(std::launch::async, take_all);
    ASSERT_TRUE(wait_until([&] { return pair.a.load(whole, kLong - 8) != 0; }));
    ASSERT_EQ(pair.a.deregister(to), 0);
    pair.a.fill(whole, 0, kLong, round);
    const auto failures = storm.get();
    ASSERT_FALSE(failures.empty());
    expect_error(failures[0], 1, IBV_WC_REM_OP_ERR, pair.qb);
    // Whole messages, the one that lost its memory, and what had been posted behind it.
    std::uint32_t i = 0;
    ibv_wc_status expected = IBV_WC_SUCCESS;
    for (const ibv_wc& wc : taken.valid() ? taken.get() : take_all()) {
      if (expected == IBV_WC_LOC_PROT_ERR) expected = IBV_WC_WR_FLUSH_ERR;
      if (expected == IBV_WC_SUCCESS && wc.status != IBV_WC_SUCCESS) expected = IBV_WC_LOC_PROT_ERR;
      EXPECT_EQ(wc.wr_id, i++);
      EXPECT_EQ(wc.status, expected) << ibv_wc_status_str(wc.status);
    }
    EXPECT_EQ(expected, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(pair.a.mismatch(whole, 0, kLong, round), -1);
    pair.reconnect();
  }
}

}  // namespace
}  // namespace verbatim::harness
