// SPDX-License-Identifier: BSD-2-Clause
//
// Requests to a side that is not ready, or that does not answer (IBTA 9.7.5.2.8, 9.7.6.1.3): how
// long they wait, by which attributes, and what they end in.
//
// A bound from below is exact. One from above is generous, since the machine may be busy: it tells
// "in time" from "never".
#include <chrono>

#include "tests/support/rc_fault.hpp"

namespace verbatim::harness {
namespace {

class RcTimeout : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcTimeout, each_way());

class RcTimeoutOfTheDead : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcTimeoutOfTheDead, between_processes());

using Clock = std::chrono::steady_clock;
constexpr double kBusyMs = 1500;

void expect_in_time(double took_ms, double least_ms) {
  EXPECT_GE(took_ms, least_ms);
  EXPECT_LE(took_ms, 3 * least_ms + kBusyMs);
}

/// IBTA 9.7.6.1.3: 4.096 us x 2^timeout, once and for each retry.
double patience_ms(const Link& link) {
  return 4.096e-3 * static_cast<double>(1u << link.timeout) * (link.retry_count + 1);
}

/// Three tries, 4 ms each.
Link short_timeout() {
  Link link;
  link.timeout = 10;
  link.retry_count = 2;
  return link;
}

/// One request of each kind, small and large.
std::vector<Request> all_kinds(const RegionInfo& local, const RegionInfo& remote) {
  const Slice eight = slice(local, 0, 8);
  return {send(1, slice(local, 0, 40)),
          send(1, slice(local, 0, 40)).with(IBV_SEND_INLINE),
          send(1, slice(local, 0, 1_MiB)),
          write(1, eight, remote),
          write(1, eight, remote).with(IBV_SEND_INLINE),
          write(1, slice(local, 0, 1_MiB), remote).with_imm(1),
          read(1, eight, remote),
          read(1, slice(local, 0, 1_MiB), remote),
          fetch_add(1, eight, remote, 0, 1),
          compare_swap(1, eight, remote, 0, 0, 1)};
}

/// The request ends so, after that time; all that stands behind it and all receives are flushed in
/// order, and so is what is posted later.
void expect_unanswered(Side& side, const QpInfo& qp, const Request& request, double least_ms) {
  SCOPED_TRACE(::testing::Message() << request.from.bytes() << " bytes, opcode " << request.opcode);
  expect_posted(side.post_receive(qp, std::vector{receive(11), receive(12)}));
  const auto start = Clock::now();
  expect_posted(side.post_send(qp, {request, send(2, {}).unsignaled(), send(3, {})}));
  const auto sent = side.poll_sends(qp, 3);
  expect_in_time(ms_since(start), least_ms);
  expect_error(sent[0], request.wr_id, IBV_WC_RETRY_EXC_ERR, qp);
  expect_error(sent[1], 2, IBV_WC_WR_FLUSH_ERR, qp);
  expect_error(sent[2], 3, IBV_WC_WR_FLUSH_ERR, qp);
  EXPECT_EQ(side.state(qp), IBV_QPS_ERR);
  expect_posted(side.post_receive(qp, receive(13)));
  const auto got = side.poll_receives(qp, 3);
  for (std::uint64_t i = 0; i < 3; ++i) expect_error(got[i], 11 + i, IBV_WC_WR_FLUSH_ERR, qp);
  expect_posted(side.post_send(qp, send(4, {})));
  expect_error(side.poll_sends(qp, 1)[0], 4, IBV_WC_WR_FLUSH_ERR, qp);
}

/// Nothing comes for `ms`, which is far beyond what any wait of this queue pair could take.
void expect_still_waiting(Side& side, const QpInfo& qp, double ms) {
  const auto start = Clock::now();
  while (ms_since(start) < ms) ASSERT_TRUE(side.poll_once(qp.send_cq, 1).empty());
  EXPECT_EQ(side.state(qp), IBV_QPS_RTS);
}

TEST_P(RcTimeout, AReceiverThatIsNeverReadyIsWaitedForAsItsTimerAndTheRetriesSay) {
  struct Case {
    std::uint8_t timer, retries;
    double ms;
  };
  for (const Case& asked :
       {Case{12, 0, 0}, Case{1, 6, 0.06}, Case{17, 3, 3 * 3.84}, Case{20, 5, 5 * 10.24}}) {
    SCOPED_TRACE(::testing::Message() << int{asked.timer} << " x " << int{asked.retries});
    PairWish wish;
    wish.link_b.min_rnr_timer = asked.timer;
    wish.link_a.rnr_retry = asked.retries;
    FaultScene scene(GetParam(), wish);
    const auto never_ready = [&](const char* what, const Request& request) {
      expect_in_time(scene.expect(what, request, IBV_WC_RNR_RETRY_EXC_ERR, kUntouched, {}),
                     asked.ms);
    };
    for (const std::uint64_t size : kFaultSizes) {
      never_ready("send", send(0, slice(scene.local, 0, size)));
    }
    never_ready("empty send", send(0, {}));
    never_ready("inline send", send(0, slice(scene.local, 0, 100)).with(IBV_SEND_INLINE));
    never_ready("send with immediate", send(0, slice(scene.local, 0, 8)).with_imm(1));
    scene.expect_memory_untouched();
  }
}

TEST_P(RcTimeout, ASendThatWaitedWithoutTheRightToItsMemoryFailsInItsTurn) {
  Pair pair(GetParam());
  const RegionInfo from = pair.a.allocate(GetParam().memory, 64);
  Slice foreign = slice(from, 0, 8);
  foreign.lkey = from.lkey ^ 0x40;
  expect_posted(pair.a.post_send(
      pair.qa, {send(1, slice(from, 0, 8)), send(2, foreign), send(3, slice(from, 0, 8))}));
  EXPECT_TRUE(pair.a.poll_once(pair.qa.send_cq, 1).empty());
  const RegionInfo to = pair.b.allocate(GetParam().memory, 64);
  expect_posted(pair.b.post_receive(
      pair.qb, std::vector{receive(11, slice(to, 0, 8)), receive(12, slice(to, 8, 8))}));
  const auto sent = pair.a.poll_sends(pair.qa, 3);
  expect_wc(sent[0], 1, IBV_WC_SEND, pair.qa);
  expect_error(sent[1], 2, IBV_WC_LOC_PROT_ERR, pair.qa);
  expect_error(sent[2], 3, IBV_WC_WR_FLUSH_ERR, pair.qa);
  expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 11, 8, pair.qb);
}

TEST_P(RcTimeout, AWriteWithImmediateWaitsForAReceiveAsASendDoes) {
  PairWish wish;
  wish.link_b.min_rnr_timer = 17;
  wish.link_a.rnr_retry = 3;
  FaultScene scene(GetParam(), wish);
  for (const std::uint64_t size : kFaultSizes) {
    const Request request = write(0, slice(scene.local, 0, size), scene.remote).with_imm(1);
    expect_in_time(
        scene.expect("write with immediate", request, IBV_WC_RNR_RETRY_EXC_ERR, kUntouched, {}),
        3 * 3.84);
  }
}

TEST_P(RcTimeout, SevenRnrRetriesAreForEverWhateverTheTimeoutSays) {
  Pair pair(GetParam());
  const RegionInfo from = pair.a.allocate(GetParam().memory, 100'000);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 100'000);
  // The processes meet on another connection, which takes them longer than the timeout of this one.
  expect_posted(pair.a.post_send(pair.qa, read(0, slice(from, 0, 8), to)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 0, IBV_WC_RDMA_READ, pair.qa);
  Link link;
  link.min_rnr_timer = 1;
  link.timeout = 1;
  link.retry_count = 0;
  const QpInfo qa = pair.a.create_qp();
  const QpInfo qb = pair.b.create_qp();
  pair.b.connect(qb, qa, link);
  pair.a.connect(qa, qb, link);
  for (const std::uint64_t size : {8u, 100'000u}) {
    pair.a.fill(from, 0, size, 5);
    expect_posted(pair.a.post_send(qa, send(1, slice(from, 0, size))));
    expect_still_waiting(pair.a, qa, 100);
    expect_posted(pair.b.post_receive(qb, receive(2, slice(to, 0, size))));
    expect_receive(pair.b.poll_receives(qb, 1)[0], 2, size, qb);
    expect_wc(pair.a.poll_sends(qa, 1)[0], 1, IBV_WC_SEND, qa);
    EXPECT_EQ(pair.b.mismatch(to, 0, size, 5), -1);
  }
}

TEST_P(RcTimeout, APeerThatIsNotYetReadyToReceiveIsTriedUntilTheLimit) {
  PairWish wish;
  wish.connected = false;
  Pair pair(GetParam(), wish);
  const RegionInfo local = pair.a.allocate(GetParam().memory, 1_MiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 1_MiB);
  const Link link = short_timeout();
  bool in_init = false;
  for (const Request& request : all_kinds(local, remote)) {
    in_init = !in_init;
    const QpInfo qa = pair.a.create_qp();
    const QpInfo qb = pair.b.create_qp();
    if (in_init) {
      ASSERT_EQ(pair.b.call<&Endpoint::to_init>(qb.id, link), 0);
      expect_posted(pair.b.post_receive(qb, receive(1, slice(remote, 0, 1_MiB))));
    }
    pair.a.connect(qa, qb, link);
    expect_unanswered(pair.a, qa, request, patience_ms(link));
    EXPECT_EQ(pair.b.state(qb), in_init ? IBV_QPS_INIT : IBV_QPS_RESET);
    EXPECT_TRUE(pair.b.poll_once(qb.receive_cq, 1).empty());
  }
  EXPECT_EQ(pair.b.call<&Endpoint::take_async_event>(0).type, -1);
  expect_untouched(pair.b, remote, 0, 4096, 0);
}

TEST_P(RcTimeout, APeerInTheErrorStateIsTriedUntilTheLimit) {
  PairWish wish;
  wish.link_a = short_timeout();
  Pair pair(GetParam(), wish);
  const RegionInfo local = pair.a.allocate(GetParam().memory, 1_MiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 1_MiB);
  bool met = false;
  for (const Request& request : all_kinds(local, remote)) {
    met = !met;
    const auto [qa, qb] = pair.add_qps({}, {});
    if (met) {
      expect_posted(pair.a.post_send(qa, write(0, slice(local, 0, 8), remote, 8192)));
      expect_wc(pair.a.poll_sends(qa, 1)[0], 0, IBV_WC_RDMA_WRITE, qa);
    }
    expect_posted(pair.b.post_receive(qb, receive(1, slice(remote, 0, 1_MiB))));
    ASSERT_EQ(pair.b.to_state(qb, IBV_QPS_ERR), 0);
    expect_unanswered(pair.a, qa, request, patience_ms(wish.link_a));
    expect_error(pair.b.poll_receives(qb, 1)[0], 1, IBV_WC_WR_FLUSH_ERR, qb);
    EXPECT_EQ(pair.b.state(qb), IBV_QPS_ERR);
  }
  EXPECT_EQ(pair.b.call<&Endpoint::take_async_event>(0).type, -1);
  expect_untouched(pair.b, remote, 0, 4096, 0);
}

TEST_P(RcTimeout, APeerThatWasDestroyedIsTriedUntilTheLimit) {
  PairWish wish;
  wish.link_a = short_timeout();
  Pair pair(GetParam(), wish);
  const RegionInfo local = pair.a.allocate(GetParam().memory, 1_MiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 1_MiB);
  bool met = false;
  for (const Request& request : all_kinds(local, remote)) {
    met = !met;
    const auto [qa, qb] = pair.add_qps({}, {});
    if (met) {
      expect_posted(pair.a.post_send(qa, write(0, slice(local, 0, 8), remote, 8192)));
      expect_wc(pair.a.poll_sends(qa, 1)[0], 0, IBV_WC_RDMA_WRITE, qa);
    }
    ASSERT_EQ(pair.b.call<&Endpoint::destroy_qp>(qb.id), 0);
    expect_unanswered(pair.a, qa, request, patience_ms(wish.link_a));
  }
  expect_untouched(pair.b, remote, 0, 4096, 0);
}

TEST_P(RcTimeout, AnAddressThatNobodyEverHadIsTriedUntilTheLimit) {
  PairWish wish;
  wish.connected = false;
  Pair pair(GetParam(), wish);
  const RegionInfo local = pair.a.allocate(GetParam().memory, 1_MiB);
  const Link link = short_timeout();
  const Slice eight = slice(local, 0, 8);
  for (const Request& request : {send(1, slice(local, 0, 1_MiB)), write(1, eight, local),
                                 fetch_add(1, eight, local, 0, 1)}) {
    QpInfo nobody = pair.qb;
    nobody.qpn ^= 0x7F0000;
    const QpInfo qa = pair.a.create_qp();
    pair.a.connect(qa, nobody, link);
    expect_unanswered(pair.a, qa, request, patience_ms(link));
  }
}

TEST_P(RcTimeout, ZeroIsForEverAndTheErrorStateEndsTheWait) {
  PairWish wish;
  wish.link_a.timeout = 0;
  wish.link_a.retry_count = 0;
  Pair pair(GetParam(), wish);
  const RegionInfo local = pair.a.allocate(GetParam().memory, 4096);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 4096);
  ASSERT_EQ(pair.b.to_state(pair.qb, IBV_QPS_ERR), 0);
  expect_posted(
      pair.a.post_send(pair.qa, {write(1, slice(local, 0, 8), remote).unsignaled(), send(2, {})}));
  expect_still_waiting(pair.a, pair.qa, 300);
  ASSERT_EQ(pair.a.to_state(pair.qa, IBV_QPS_ERR), 0);
  const auto sent = pair.a.poll_sends(pair.qa, 2);
  expect_error(sent[0], 1, IBV_WC_WR_FLUSH_ERR, pair.qa);
  expect_error(sent[1], 2, IBV_WC_WR_FLUSH_ERR, pair.qa);
}

TEST_P(RcTimeoutOfTheDead, AProcessThatDiedIsWaitedForByNobodyAlsoNotForEver) {
  for (const unsigned timeout : {0u, 31u}) {
    SCOPED_TRACE(timeout);
    PairWish wish;
    wish.link_a.timeout = static_cast<std::uint8_t>(timeout);
    Pair pair(GetParam(), wish);
    const RegionInfo local = pair.a.allocate(GetParam().memory, 1_MiB);
    const RegionInfo remote = pair.b.allocate(GetParam().memory, 1_MiB);
    // Some have met, others only hear of it; one waits for a receive already.
    std::vector<QpInfo> mine;
    const auto requests = all_kinds(local, remote);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      mine.push_back(pair.add_qps({}, {}).first);
      if (i % 2 == 0) continue;
      expect_posted(pair.a.post_send(mine[i], read(0, slice(local, 0, 8), remote)));
      expect_wc(pair.a.poll_sends(mine[i], 1)[0], 0, IBV_WC_RDMA_READ, mine[i]);
    }
    expect_posted(pair.a.post_send(pair.qa, send(9, slice(local, 0, 100))));
    EXPECT_TRUE(pair.a.poll_once(pair.qa.send_cq, 1).empty());
    pair.b.child().kill_and_collect();
    expect_error(pair.a.poll_sends(pair.qa, 1)[0], 9, IBV_WC_RETRY_EXC_ERR, pair.qa);
    // The news is here, then: nothing is performed any more.
    for (std::size_t i = 0; i < requests.size(); ++i) {
      expect_unanswered(pair.a, mine[i], requests[i], 0);
    }
  }
}

TEST_P(RcTimeoutOfTheDead, NorIsOneThatLeftInOrder) {
  for (const unsigned timeout : {0u, 31u}) {
    SCOPED_TRACE(timeout);
    Side a(std::make_shared<Session>());
    const RegionInfo local = a.allocate(GetParam().memory, 1_MiB);
    Link link;
    link.timeout = static_cast<std::uint8_t>(timeout);
    std::vector<QpInfo> mine;
    std::vector<Request> requests;
    {
      Side b(std::map<std::string, std::string>{});
      const RegionInfo remote = b.allocate(GetParam().memory, 1_MiB);
      requests = all_kinds(local, remote);
      for (std::size_t i = 0; i < requests.size(); ++i) {
        mine.push_back(a.create_qp());
        const QpInfo theirs = b.create_qp();
        b.connect(theirs, mine[i]);
        a.connect(mine[i], theirs, link);
        expect_posted(a.post_send(mine[i], read(0, slice(local, 0, 8), remote)));
        expect_wc(a.poll_sends(mine[i], 1)[0], 0, IBV_WC_RDMA_READ, mine[i]);
      }
    }  // destroys its queue pairs, closes, exits
    for (std::size_t i = 0; i < requests.size(); ++i) {
      expect_unanswered(a, mine[i], requests[i], 0);
    }
  }
}

}  // namespace
}  // namespace verbatim::harness
