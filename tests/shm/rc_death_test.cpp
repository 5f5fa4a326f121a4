// SPDX-License-Identifier: BSD-2-Clause
//
// When a process ends, in order or by SIGKILL, its peers learn it in bounded time and go on with
// the others.
#include <signal.h>

#include "tests/support/expect.hpp"
#include "tests/support/log_watch.hpp"

namespace verbatim::harness {
namespace {

class RcDeath : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcDeath, between_processes());

/// Far below the harness's own patience: what a user would call at once.
constexpr std::int32_t kSoonMs = 5000;

TEST_P(RcDeath, RequestsToAKilledPeerEnd) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64_KiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 64_KiB);
  expect_posted(pair.a.post_send(pair.qa, write(1, slice(local, 0, 64), remote)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_RDMA_WRITE, pair.qa);
  pair.b.child().kill_and_collect();
  // A send waits for a receive that will never be posted; the rest stands behind it.
  expect_posted(pair.a.post_send(
      pair.qa, {send(2, slice(local, 0, 64_KiB)), write(3, slice(local, 0, 64_KiB), remote),
                read(4, slice(local, 0, 64), remote)}));
  const auto done = pair.a.poll_sends(pair.qa, 3, kSoonMs);
  expect_error(done[0], 2, IBV_WC_RETRY_EXC_ERR, pair.qa);
  expect_error(done[1], 3, IBV_WC_WR_FLUSH_ERR, pair.qa);
  expect_error(done[2], 4, IBV_WC_WR_FLUSH_ERR, pair.qa);
  EXPECT_EQ(pair.a.state(pair.qa), IBV_QPS_ERR);
}

TEST_P(RcDeath, OneSidedRequestsToAKilledPeerEnd) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64_KiB);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 64_KiB);
  const auto second = pair.add_qps({}, {});
  const auto third = pair.add_qps({}, {});
  expect_posted(pair.a.post_send(pair.qa, write(1, slice(local, 0, 64), remote)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_RDMA_WRITE, pair.qa);
  pair.b.child().kill_and_collect();
  // The news may travel a moment; a request that is still performed on memory without a reader is
  // no lie.
  bool failed = false;
  ASSERT_TRUE(wait_until(
      [&] {
        expect_posted(pair.a.post_send(pair.qa, write(2, slice(local, 0, 64_KiB), remote)));
        const ibv_wc wc = pair.a.poll_sends(pair.qa, 1, kSoonMs)[0];
        failed = wc.status != IBV_WC_SUCCESS;
        if (failed) expect_error(wc, 2, IBV_WC_RETRY_EXC_ERR, pair.qa);
        return failed;
      },
      kSoonMs));
  EXPECT_TRUE(failed);
  expect_posted(pair.a.post_send(second.first, read(3, slice(local, 0, 8), remote)));
  expect_error(pair.a.poll_sends(second.first, 1, kSoonMs)[0], 3, IBV_WC_RETRY_EXC_ERR,
               second.first);
  expect_posted(pair.a.post_send(third.first, fetch_add(3, slice(local, 0, 8), remote, 0, 1)));
  expect_error(pair.a.poll_sends(third.first, 1, kSoonMs)[0], 3, IBV_WC_RETRY_EXC_ERR, third.first);
}

TEST_P(RcDeath, TheEndOfAPeerIsOneLineHoweverManyConnectionsItHad) {
  LogWatch* const watch = LogWatch::instance();
  if (watch == nullptr) GTEST_SKIP() << "VERBATIM_LOG is set";
  constexpr std::uint32_t kConnections = 12;
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 4096);
  std::vector<QpInfo> all{pair.qa};
  while (all.size() < kConnections) all.push_back(pair.add_qps({}, {}).first);
  // The processes have met, so that the end of one is known for what it is.
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 64);
  expect_posted(pair.a.post_send(pair.qa, write(0, slice(local, 0, 8), remote)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 0, IBV_WC_RDMA_WRITE, pair.qa);
  // Each waits for a receive that nobody posts.
  for (const QpInfo& qp : all) expect_posted(pair.a.post_send(qp, send(1, slice(local, 0, 64))));
  pair.b.child().kill_and_collect();
  for (const QpInfo& qp : all)
    expect_error(pair.a.poll_sends(qp, 1, kSoonMs)[0], 1, IBV_WC_RETRY_EXC_ERR, qp);
  const auto lines = watch->explanations();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("its process has ended"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("12 queue pairs were connected to that process"), std::string::npos)
      << lines[0];
}

TEST_P(RcDeath, ASendInFlightWhenThePeerIsKilledEndsInRetryExceeded) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 1_MiB);
  for (std::uint32_t i = 0; i < 5; ++i) {
    expect_posted(pair.a.post_send(pair.qa, send(i, slice(local, 0, 1_MiB))));
  }
  EXPECT_TRUE(pair.a.poll_once(pair.qa.send_cq, 1).empty());
  pair.b.child().kill_and_collect();
  const auto done = pair.a.poll_sends(pair.qa, 5, kSoonMs);
  expect_error(done[0], 0, IBV_WC_RETRY_EXC_ERR, pair.qa);
  for (std::uint32_t i = 1; i < 5; ++i) expect_error(done[i], i, IBV_WC_WR_FLUSH_ERR, pair.qa);
}

TEST_P(RcDeath, ReceivesFromAKilledPeerAreFlushedAndEventAndLogSaySo) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 4096);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 4096);
  expect_posted(pair.a.post_receive(
      pair.qa, std::vector{receive(1, slice(local, 0, 64)), receive(2, slice(local, 64, 64)),
                           receive(3, slice(local, 128, 64))}));
  pair.b.fill(remote, 0, 64, 9);
  expect_posted(pair.b.post_send(pair.qb, send(1, slice(remote, 0, 64))));
  expect_wc(pair.b.poll_sends(pair.qb, 1)[0], 1, IBV_WC_SEND, pair.qb);
  pair.b.child().kill_and_collect();
  // What it had sent before it died is still delivered.
  const auto got = pair.a.poll_receives(pair.qa, 3, kSoonMs);
  expect_receive(got[0], 1, 64, pair.qa);
  EXPECT_EQ(pair.a.mismatch(local, 0, 64, 9), -1);
  expect_error(got[1], 2, IBV_WC_WR_FLUSH_ERR, pair.qa);
  expect_error(got[2], 3, IBV_WC_WR_FLUSH_ERR, pair.qa);
  const AsyncEvent event = pair.a.call<&Endpoint::take_async_event>(kSoonMs);
  EXPECT_EQ(event.type, IBV_EVENT_QP_FATAL);
  EXPECT_EQ(event.qp, pair.qa.id);
  LogWatch* const watch = LogWatch::instance();
  if (watch == nullptr) return;  // VERBATIM_LOG is set
  const auto lines = watch->explanations();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("its process has ended"), std::string::npos) << lines[0];
}

TEST_P(RcDeath, APeerThatExitsInOrderFlushesNothing) {
  const auto session = std::make_shared<Session>();
  Side a(session);
  const QpInfo qa = a.create_qp();
  const RegionInfo local = a.allocate(GetParam().memory, 4096);
  {
    Side b(std::map<std::string, std::string>{});
    const QpInfo qb = b.create_qp();
    a.connect(qa, qb);
    b.connect(qb, qa);
    const RegionInfo remote = b.allocate(GetParam().memory, 4096);
    expect_posted(a.post_receive(
        qa, std::vector{receive(0, slice(local, 128, 64)), receive(1, slice(local, 0, 64)),
                        receive(2, slice(local, 64, 64))}));
    b.fill(remote, 0, 64, 9);
    expect_posted(b.post_send(qb, send(0, slice(remote, 0, 64))));
    expect_wc(b.poll_sends(qb, 1)[0], 0, IBV_WC_SEND, qb);
    expect_receive(a.poll_receives(qa, 1)[0], 0, 64, qa);
    expect_posted(b.post_send(qb, send(1, slice(remote, 0, 64))));
    expect_wc(b.poll_sends(qb, 1)[0], 1, IBV_WC_SEND, qb);
  }  // destroys its QP, closes, exits
  // Its last message stands alone: the other receive stays posted, as behind a HCA.
  expect_receive(a.poll_receives(qa, 1, kSoonMs)[0], 1, 64, qa);
  EXPECT_EQ(a.mismatch(local, 0, 64, 9), -1);
  EXPECT_TRUE(a.poll_once(qa.receive_cq, 1).empty());
  EXPECT_EQ(a.state(qa), IBV_QPS_RTS);
  // What is sent now meets nobody.
  expect_posted(a.post_send(qa, send(3, slice(local, 0, 64))));
  expect_error(a.poll_sends(qa, 1, kSoonMs)[0], 3, IBV_WC_RETRY_EXC_ERR, qa);
  expect_error(a.poll_receives(qa, 1, kSoonMs)[0], 2, IBV_WC_WR_FLUSH_ERR, qa);
}

TEST_P(RcDeath, APeerThatExitsInOrderEndsTheConnectionToo) {
  const auto session = std::make_shared<Session>();
  Side a(session);
  const QpInfo qa = a.create_qp();
  const RegionInfo local = a.allocate(GetParam().memory, 64);
  {
    Side b(std::map<std::string, std::string>{});
    const QpInfo qb = b.create_qp();
    a.connect(qa, qb);
    b.connect(qb, qa);
    const RegionInfo remote = b.allocate(GetParam().memory, 64);
    expect_posted(a.post_send(qa, write(1, slice(local, 0, 64), remote)));
    expect_wc(a.poll_sends(qa, 1)[0], 1, IBV_WC_RDMA_WRITE, qa);
  }
  expect_posted(a.post_send(qa, send(2, slice(local, 0, 64))));
  expect_error(a.poll_sends(qa, 1, kSoonMs)[0], 2, IBV_WC_RETRY_EXC_ERR, qa);
}

TEST_P(RcDeath, TheConnectionsToOthersGoOn) {
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64_KiB);
  for (int round = 0; round < 3; ++round) {
    Side doomed(std::map<std::string, std::string>{});
    const QpInfo qd = doomed.create_qp();
    const QpInfo qa = pair.a.create_qp();
    pair.a.connect(qa, qd);
    doomed.connect(qd, qa);
    const RegionInfo at_doomed = doomed.allocate(GetParam().memory, 64_KiB);
    expect_posted(pair.a.post_send(qa, write(1, slice(local, 0, 64_KiB), at_doomed)));
    expect_wc(pair.a.poll_sends(qa, 1)[0], 1, IBV_WC_RDMA_WRITE, qa);
    doomed.child().kill_and_collect();
    expect_posted(pair.a.post_send(qa, send(2, slice(local, 0, 8))));
    expect_error(pair.a.poll_sends(qa, 1, kSoonMs)[0], 2, IBV_WC_RETRY_EXC_ERR, qa);

    const RegionInfo remote = pair.b.allocate(GetParam().memory, 64_KiB);
    pair.a.fill(local, 0, 64_KiB, 3);
    expect_posted(pair.b.post_receive(pair.qb, receive(3, slice(remote, 0, 64_KiB))));
    expect_posted(pair.a.post_send(pair.qa, send(4, slice(local, 0, 64_KiB))));
    expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 4, IBV_WC_SEND, pair.qa);
    expect_receive(pair.b.poll_receives(pair.qb, 1)[0], 3, 64_KiB, pair.qb);
    EXPECT_EQ(pair.b.mismatch(remote, 0, 64_KiB, 3), -1);
  }
}

TEST_P(RcDeath, AKilledProcessLeavesAFolderThatTheNextOnesUse) {
  for (int round = 0; round < 5; ++round) {
    Side doomed(std::map<std::string, std::string>{});
    doomed.create_qp();
    doomed.child().kill_and_collect();
  }
  Pair pair(GetParam());
  const RegionInfo local = pair.a.allocate(GetParam().memory, 64);
  const RegionInfo remote = pair.b.allocate(GetParam().memory, 64);
  expect_posted(pair.a.post_send(pair.qa, write(1, slice(local, 0, 64), remote)));
  expect_wc(pair.a.poll_sends(pair.qa, 1)[0], 1, IBV_WC_RDMA_WRITE, pair.qa);
}

}  // namespace
}  // namespace verbatim::harness
