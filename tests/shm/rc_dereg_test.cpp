// SPDX-License-Identifier: BSD-2-Clause
//
// Deregistration is a promise: when ibv_dereg_mr, ibv_destroy_qp or a move to the error state has
// returned, no peer touches the memory any more, however many copies were under way.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <future>

#include "tests/shm/dereg_storm.hpp"
#include "tests/shm/peer_tier.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

class RcDereg : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcDereg, each_way_and_two_contexts());

/// The peers of a storm are processes, or threads with a context each.
std::vector<Setting> settings_of_storms() {
  std::vector<Setting> settings = each_way_and_two_contexts();
  std::erase_if(settings, [](const Setting& s) { return s.placement == Placement::kOneContext; });
  return settings;
}
class RcDeregStorm : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcDeregStorm, settings_of_storms());

class RcDeregOfProcesses : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcDeregOfProcesses, between_processes());

constexpr std::uint64_t kSize = 1_MiB;
constexpr std::uint32_t kRounds = 12;

/// Further queue pairs whose requests end soon after the other side is gone.
std::pair<QpInfo, QpInfo> impatient_qps(Pair& pair) {
  Link link;
  link.timeout = 8;  // 1 ms
  link.retry_count = 1;
  const QpInfo qa = pair.a.create_qp();
  const QpInfo qb = pair.b.create_qp();
  pair.a.connect(qa, qb, link);
  pair.b.connect(qb, qa, link);
  return {qa, qb};
}

/// Processes meet at their first message, which on a busy machine takes longer than a millisecond.
void let_them_meet(Pair& pair, const RegionInfo& at_a, const RegionInfo& at_b) {
  expect_posted(pair.b.post_send(pair.qb, read(0, slice(at_b, 0, 8), at_a)));
  expect_wc(pair.b.poll_sends(pair.qb, 1)[0], 0, IBV_WC_RDMA_READ, pair.qb);
}

/// `b` keeps this request in flight on its queue pair until it fails.
std::future<std::vector<ibv_wc>> start_storm(Side& b, const QpInfo& qp, const Request& request) {
  return std::async(std::launch::async, [&b, qp, request] {
    return b.call<&Endpoint::storm>(qp.id, request, 8u, kForEver);
  });
}

void expect_storm_failed(std::future<std::vector<ibv_wc>> storm, ibv_wc_status status) {
  const auto failures = storm.get();
  ASSERT_FALSE(failures.empty());
  EXPECT_EQ(failures[0].status, status) << describe(failures);
}

TEST_P(RcDereg, AfterItNoWriteOfThePeersTouchesTheMemory) {
  Pair pair(GetParam());
  const RegionInfo source = pair.b.allocate(GetParam().memory, kSize);
  const RegionInfo whole = pair.a.allocate(GetParam().memory, kSize);
  pair.b.set(source, 0, kSize, 0x99);
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    const std::uint64_t size = round % 3 == 0 ? 8 : kSize;
    const RegionInfo target = pair.a.register_part(whole, 0, kSize);
    pair.a.set(whole, 0, kSize, 0);
    Request request = write(1, slice(source, 0, size), target, kSize - size);
    if (size <= 220) request = request.with(IBV_SEND_INLINE);
    auto storm = start_storm(pair.b, pair.qb, request);
    ASSERT_TRUE(wait_until([&] { return pair.a.load(whole, kSize - 8) != 0; }));
    ASSERT_EQ(pair.a.deregister(target), 0);
    pair.a.fill(whole, 0, kSize, round);
    expect_storm_failed(std::move(storm), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(pair.a.mismatch(whole, 0, kSize, round), -1);
    pair.reconnect();
  }
}

TEST_P(RcDereg, AfterItNoReadOfThePeersSeesTheMemory) {
  Pair pair(GetParam());
  const RegionInfo sink = pair.b.allocate(GetParam().memory, kSize);
  const RegionInfo whole = pair.a.allocate(GetParam().memory, kSize);
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    const RegionInfo target = pair.a.register_part(whole, 0, kSize);
    pair.a.set(whole, 0, kSize, 0x11);
    pair.b.set(sink, 0, kSize, 0);
    const QpInfo qb = pair.qb;
    // Until some have succeeded, so that the next ones are under way.
    const auto first = pair.b.call<&Endpoint::storm>(qb.id, read(1, slice(sink, 0, kSize), target),
                                                     2u, std::uint64_t{2});
    ASSERT_TRUE(first.empty()) << describe(first);
    auto storm = start_storm(pair.b, qb, read(1, slice(sink, 0, kSize), target));
    ASSERT_EQ(pair.a.deregister(target), 0);
    pair.a.set(whole, 0, kSize, 0xFF);  // a secret
    expect_storm_failed(std::move(storm), IBV_WC_REM_ACCESS_ERR);
    const auto found = pair.b.peek(sink, 0, kSize);
    EXPECT_EQ(std::count(found.begin(), found.end(), 0xFF), 0);
    pair.reconnect();
  }
}

TEST_P(RcDereg, AfterDestroyQpNoSendOfThePeersTouchesTheReceives) {
  Pair pair(GetParam());
  const RegionInfo source = pair.b.allocate(GetParam().memory, kSize);
  const RegionInfo target = pair.a.allocate(GetParam().memory, kSize);
  let_them_meet(pair, target, source);
  pair.b.set(source, 0, kSize, 0x99);
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    const auto [qa, qb] = impatient_qps(pair);
    const std::uint64_t size = round % 3 == 0 ? 40 : kSize;
    for (std::uint32_t i = 0; i < 100; ++i) {
      expect_posted(pair.a.post_receive(qa, receive(i, slice(target, 0, kSize))));
    }
    auto storm = start_storm(pair.b, qb, send(1, slice(source, 0, size)));
    pair.a.poll_receives(qa, 5);
    ASSERT_EQ(pair.a.call<&Endpoint::destroy_qp>(qa.id), 0);
    pair.a.fill(target, 0, kSize, round);
    expect_storm_failed(std::move(storm), IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(pair.a.mismatch(target, 0, kSize, round), -1);
  }
}

TEST_P(RcDereg, AfterTheErrorStateAndItsFlushNoSendTouchesTheReceives) {
  constexpr std::uint32_t kReceives = 100;
  Pair pair(GetParam());
  const RegionInfo source = pair.b.allocate(GetParam().memory, kSize);
  const RegionInfo target = pair.a.allocate(GetParam().memory, kSize);
  let_them_meet(pair, target, source);
  pair.b.set(source, 0, kSize, 0x99);
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    const auto [qa, qb] = impatient_qps(pair);
    const std::uint64_t size = round % 3 == 0 ? 40 : kSize;
    for (std::uint32_t i = 0; i < kReceives; ++i) {
      expect_posted(pair.a.post_receive(qa, receive(i, slice(target, 0, kSize))));
    }
    auto storm = start_storm(pair.b, qb, send(1, slice(source, 0, size)));
    auto got = pair.a.poll_receives(qa, 5);
    ASSERT_EQ(pair.a.to_state(qa, IBV_QPS_ERR), 0);
    const auto rest = pair.a.poll_receives(qa, kReceives - 5);
    got.insert(got.end(), rest.begin(), rest.end());
    pair.a.fill(target, 0, kSize, round);
    // Successes, then flushes, in the order of the posts.
    bool flushed = false;
    for (std::uint32_t i = 0; i < kReceives; ++i) {
      EXPECT_EQ(got[i].wr_id, i);
      flushed = flushed || got[i].status != IBV_WC_SUCCESS;
      EXPECT_EQ(got[i].status, flushed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
    }
    ASSERT_FALSE(storm.get().empty());
    EXPECT_EQ(pair.a.mismatch(target, 0, kSize, round), -1);
  }
}

TEST_P(RcDeregStorm, NothingIsTouchedAfterDeregAfterDestroyAfterErrorOrReset) {
  run_dereg_storm(GetParam(), 24);
}

/// A process that is stopped in the middle of a copy could go on with it at any time: the verb says
/// so after a bounded wait instead of lying, and does its work when the process has gone on.
TEST_P(RcDeregOfProcesses, AStoppedPeerMakesItBusyAfterABoundAndItCanBeRepeated) {
  constexpr std::uint64_t kLong = 16_MiB;
  const AllowedLog says_why("was stopped in the middle of a copy");
  Pair pair(GetParam());
  const RegionInfo source = pair.b.allocate(GetParam().memory, kLong);
  const RegionInfo whole = pair.a.allocate(GetParam().memory, kLong);
  pair.b.set(source, 0, kLong, 0x99);
  // It nearly always is in a copy; a stop between two of them leaves nothing to wait for.
  int error = 0;
  // Where our own thread copies, it is in the middle of nothing that takes long.
  bool peer_copies = true;
  for (std::uint32_t round = 0; round < (peer_copies ? 20 : 3) && error == 0; ++round) {
    SCOPED_TRACE(round);
    pair.a.set(whole, 0, kLong, 0);
    const RegionInfo target = pair.a.register_part(whole, 0, kLong);
    auto storm = start_storm(pair.b, pair.qb, write(1, slice(source, 0, kLong), target));
    ASSERT_TRUE(wait_until([&] { return pair.a.load(whole, 0) != 0; }));
    peer_copies = copies_itself(pair, target);
    pair.b.child().signal(SIGSTOP);
    ASSERT_TRUE(wait_until([&] { return pair.b.child().is_stopped(); }));
    const auto start = std::chrono::steady_clock::now();
    error = pair.a.deregister(target);
    const auto took = std::chrono::steady_clock::now() - start;
    EXPECT_LT(took, std::chrono::seconds(4));
    if (error != 0) {
      EXPECT_EQ(error, EBUSY);
      EXPECT_GE(took, std::chrono::seconds(1));
      if (GetParam().memory == MemoryKind::kMapped) {
        EXPECT_EQ(pair.a.to_state(pair.qa, IBV_QPS_RESET), EBUSY);
      }
    }
    pair.b.child().signal(SIGCONT);
    if (error != 0) {
      ASSERT_EQ(pair.a.deregister(target), 0);
    }
    pair.a.fill(whole, 0, kLong, round);
    const auto failures = storm.get();
    ASSERT_FALSE(failures.empty());
    EXPECT_TRUE(failures[0].status == IBV_WC_REM_ACCESS_ERR ||
                (error != 0 && failures[0].status == IBV_WC_RETRY_EXC_ERR))
        << describe(failures);
    EXPECT_EQ(pair.a.mismatch(whole, 0, kLong, round), -1);
    pair.reconnect();
  }
  EXPECT_TRUE(error == EBUSY || !peer_copies) << "the peer was never met in the middle of a copy";
}

}  // namespace
}  // namespace verbatim::harness
