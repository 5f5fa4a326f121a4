// SPDX-License-Identifier: BSD-2-Clause
//
// A deregistration that waits for a stopped process waits alone: everybody else is served
// meanwhile. And one in the middle of a large message takes the memory away from it.
#include <signal.h>

#include <atomic>
#include <chrono>
#include <future>

#include "tests/shm/rc_expect.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

using Clock = std::chrono::steady_clock;

class RcDeregWait : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcDeregWait, settings_with_two_processes());

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
  for (std::uint32_t round = 0; round < 20 && !busy; ++round) {
    SCOPED_TRACE(round);
    pair.a.set(whole, 0, kLong, 0);
    pair.b.set(source, 0, kLong, 0x99);
    const RegionInfo target = pair.a.register_part(whole, 0, kLong);
    auto storm = std::async(std::launch::async, [&, qp = pair.qb] {
      return pair.b.call<&Endpoint::storm>(qp.id, write(1, slice(source, 0, kLong), target), 8u,
                                           ~std::uint64_t{0});
    });
    ASSERT_TRUE(wait_until([&] { return pair.a.load(whole, 0) != 0; }));
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
  EXPECT_TRUE(busy) << "the peer was never met in the middle of a copy";
}

}  // namespace
}  // namespace verbatim::harness
