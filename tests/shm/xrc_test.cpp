// SPDX-License-Identifier: BSD-2-Clause
//
// XRC over shared memory: what is more than any device promises (tests/conformance). What becomes
// of a connection when one of its three processes ends, or sleeps, or takes its memory away.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <future>

#include "tests/support/deadline.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/process_census.hpp"
#include "tests/support/xrc_sharing.hpp"

namespace verbatim::harness {
namespace {

class XrcShm : public BetweenProcesses {};
RUN_OVER_SETTINGS(XrcShm, on_every_device(between_processes()));

constexpr std::int32_t kSoonMs = 5000;
constexpr std::uint64_t kForEver = ~std::uint64_t{0};

TEST_P(XrcShm, NeedsNothingOfTheTargetsProcessWhichMaySleep) {
  start();
  b->fall_asleep();
  a->fill(from, 0, 64_KiB, 3);
  for (std::uint64_t i = 0; i < 20; ++i) {
    post(i, 0, 64_KiB);
    EXPECT_EQ(do_one(to(shared, send(i, slice(from, 0, i * 3000)))).status, IBV_WC_SUCCESS);
    EXPECT_EQ(received(*c, shared).byte_len, i * 3000);
    EXPECT_EQ(c->mismatch(into, 0, i * 3000, 3), -1);
    EXPECT_EQ(do_one(to(shared, write(i, slice(from, 0, 64), into, 128_KiB))).status,
              IBV_WC_SUCCESS);
  }
  b->wake_up();
}

TEST_P(XrcShm, AMessageToAPostedReceiveCompletesWhileTheQueuesProcessSleeps) {
  start();
  a->fill(from, 0, 256_KiB, 5);
  post(1, 0, 256_KiB);
  c->fall_asleep();
  EXPECT_EQ(do_one(to(shared, send(1, slice(from, 0, 256_KiB)))).status, IBV_WC_SUCCESS);
  EXPECT_EQ(do_one(to(shared, read(2, slice(from, 0, 64), into))).status, IBV_WC_SUCCESS);
  c->wake_up();
  EXPECT_EQ(received(*c, shared).byte_len, 256_KiB);
}

TEST_P(XrcShm, RequestsEndWhenTheTargetsProcessIsKilled) {
  start();
  post(1, 0, 64);
  EXPECT_EQ(do_one(to(shared, send(1, slice(from, 0, 8)))).status, IBV_WC_SUCCESS);
  // The second has no receive; so it waits when the process ends.
  expect_posted(a->post_send(way.sender, {to(shared, send(2, slice(from, 0, 8))),
                                          to(shared, send(3, slice(from, 0, 8)))}));
  EXPECT_TRUE(a->poll_once(way.sender.send_cq, 1).empty());
  b->child().kill_and_collect();
  const auto done = a->poll_sends(way.sender, 2, kSoonMs);
  expect_error(done[0], 2, IBV_WC_RETRY_EXC_ERR, way.sender);
  expect_error(done[1], 3, IBV_WC_WR_FLUSH_ERR, way.sender);
  EXPECT_EQ(a->take_async_event(kSoonMs).type, IBV_EVENT_QP_FATAL);
}

TEST_P(XrcShm, RequestsEndWhenTheQueuesProcessIsKilled) {
  start();
  post(1, 0, 64);
  EXPECT_EQ(do_one(to(shared, send(1, slice(from, 0, 8)))).status, IBV_WC_SUCCESS);
  expect_posted(a->post_send(way.sender, {to(shared, send(2, slice(from, 0, 8))),
                                          to(shared, send(3, slice(from, 0, 8)))}));
  EXPECT_TRUE(a->poll_once(way.sender.send_cq, 1).empty());
  c->child().kill_and_collect();
  const auto done = a->poll_sends(way.sender, 2, kSoonMs);
  expect_error(done[0], 2, IBV_WC_RETRY_EXC_ERR, way.sender);
  expect_error(done[1], 3, IBV_WC_WR_FLUSH_ERR, way.sender);
  EXPECT_NE(b->take_async_event(kSoonMs).type, -1) << "the target ends with its initiator";
}

TEST_P(XrcShm, TheTargetHearsWhenItsInitiatorsProcessIsKilled) {
  start();
  const auto d = process();
  const Connection second = connect(*d, *b);
  const RegionInfo there = d->allocate(memory(), 4096);
  post(1, 0, 64);
  post(2, 64, 64);
  d->fill(there, 0, 64, 8);
  expect_posted(d->post_send(second.sender, to(shared, send(1, slice(there, 0, 64)))));
  EXPECT_EQ(d->poll_sends(second.sender, 1).size(), 1u);
  d->child().kill_and_collect();
  const AsyncEvent event = b->take_async_event(kSoonMs);
  EXPECT_EQ(event.type, IBV_EVENT_QP_FATAL);
  EXPECT_EQ(event.qp, second.target.id);
  // What it had sent is received, and the queue serves the others.
  EXPECT_EQ(received(*c, shared).qp_num, second.target.qpn);
  EXPECT_EQ(c->mismatch(into, 0, 64, 8), -1);
  EXPECT_EQ(do_one(to(shared, send(3, slice(from, 0, 8)))).status, IBV_WC_SUCCESS);
  EXPECT_EQ(received(*c, shared).wr_id, 2u);
}

/// Nobody else is left who could ask it to look.
TEST_P(XrcShm, SendersThatAreKilledLeaveAQueueNothingButWhatTheySent) {
  a = std::make_unique<Side>(std::make_shared<Session>(device()));
  enter_domain(*a);
  const SrqInfo mine = queue(*a);
  const RegionInfo room = a->allocate(memory(), 4096);
  const std::size_t alone = ProcessCensus::take().segments();
  std::vector<std::unique_ptr<Side>> doomed;
  std::vector<QpInfo> targets;
  for (std::uint32_t k = 0; k < 3; ++k) {
    doomed.push_back(process());
    Side& sender = *doomed.back();
    const Connection by = connect(sender, *a);
    targets.push_back(by.target);
    const RegionInfo what = sender.allocate(memory(), 64);
    sender.fill(what, 0, 64, k);
    for (const std::uint64_t id : {2 * k, 2 * k + 1}) {
      expect_posted(a->post_srq_receive(mine, {receive(id, slice(room, id * 64, 64))}));
      expect_posted(sender.post_send(by.sender, to(mine, send(id, slice(what, 0, 64)))));
      EXPECT_EQ(sender.poll_sends(by.sender, 1)[0].status, IBV_WC_SUCCESS);
    }
    EXPECT_EQ(received(*a, mine).status, IBV_WC_SUCCESS);  // as many wait when they are killed
  }
  ASSERT_EQ(ProcessCensus::take().segments(), alone + doomed.size());
  for (const auto& sender : doomed) sender->child().kill_and_collect();
  for (std::size_t k = 0; k < doomed.size(); ++k)
    EXPECT_EQ(a->take_async_event(kSoonMs).type, IBV_EVENT_QP_FATAL);
  for (const QpInfo& target : targets) {
    EXPECT_EQ(received(*a, mine).status, IBV_WC_SUCCESS);
    EXPECT_EQ(a->to_state(target, IBV_QPS_RESET), 0);
  }
  EXPECT_TRUE(wait_until([&] { return ProcessCensus::take().segments() == alone; }));
}

TEST_P(XrcShm, TheReceiveOfAMessageWhoseSenderIsKilledFlushes) {
  start();
  const auto d = process();
  const Connection second = connect(*d, *b);
  constexpr std::uint64_t kHuge = 64_MiB;
  const RegionInfo there = d->allocate(memory(), kHuge);
  const RegionInfo room = c->allocate(memory(), kHuge);
  post(0, 0, 64);
  expect_posted(d->post_send(second.sender, to(shared, send(0, slice(there, 0, 8)))));
  EXPECT_EQ(received(*c, shared).wr_id, 0u);
  expect_posted(c->post_srq_receive(shared, {receive(1, slice(room, 0, kHuge))}));
  expect_posted(d->post_send(second.sender, to(shared, send(1, slice(there, 0, kHuge)))));
  // It is under way: some of it has come. All of it may have, too; then it is received.
  EXPECT_TRUE(c->poll_once(shared.cq, 1).empty());
  d->child().kill_and_collect();
  const ibv_wc wc = c->call<&Endpoint::poll>(shared.cq, 1u, kSoonMs)[0];
  EXPECT_EQ(wc.wr_id, 1u);
  EXPECT_TRUE(wc.status == IBV_WC_WR_FLUSH_ERR || wc.status == IBV_WC_SUCCESS)
      << ibv_wc_status_str(wc.status);
  post(2, 0, 64);
  EXPECT_EQ(do_one(to(shared, send(3, slice(from, 0, 8)))).status, IBV_WC_SUCCESS);
  EXPECT_EQ(received(*c, shared).wr_id, 2u);
}

TEST_P(XrcShm, TheReceiveOfAMessageWhoseSenderIsResetInItsMiddleFlushes) {
  start();
  constexpr std::uint64_t kHuge = 64_MiB;
  const RegionInfo there = a->allocate(memory(), kHuge);
  const RegionInfo room = c->allocate(memory(), kHuge);
  post(0, 0, 64);
  EXPECT_EQ(do_one(to(shared, send(0, slice(from, 0, 8)))).status, IBV_WC_SUCCESS);
  EXPECT_EQ(received(*c, shared).wr_id, 0u);
  expect_posted(c->post_srq_receive(shared, {receive(1, slice(room, 0, kHuge))}));
  // Its process is stopped, so nobody takes from the stream ring.
  ASSERT_EQ(::kill(c->child().pid(), SIGSTOP), 0);
  expect_posted(a->post_send(way.sender, to(shared, send(1, slice(there, 0, kHuge)))));
  EXPECT_TRUE(a->poll_once(way.sender.send_cq, 1).empty());
  EXPECT_EQ(a->to_state(way.sender, IBV_QPS_RESET), 0);
  ASSERT_EQ(::kill(c->child().pid(), SIGCONT), 0);
  EXPECT_EQ(b->to_state(way.target, IBV_QPS_RESET), 0);
  const ibv_wc wc = c->call<&Endpoint::poll>(shared.cq, 1u, kSoonMs)[0];
  EXPECT_EQ(wc.wr_id, 1u);
  EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
  a->connect(way.sender, way.target);
  b->connect(way.target, way.sender);
  post(2, 0, 64);
  EXPECT_EQ(do_one(to(shared, send(2, slice(from, 0, 8)))).status, IBV_WC_SUCCESS);
  EXPECT_EQ(received(*c, shared).wr_id, 2u);
}

TEST_P(XrcShm, MessagesStayWhenTheirSenderIsDestroyed) {
  start();
  for (std::uint64_t i = 0; i < 8; ++i) post(i, i * 8_KiB, 8_KiB);
  a->fill(from, 0, 64_KiB, 4);
  for (std::uint64_t i = 0; i < 8; ++i)
    EXPECT_EQ(do_one(to(shared, send(i, slice(from, i * 8_KiB, 8_KiB)))).status, IBV_WC_SUCCESS);
  EXPECT_EQ(a->call<&Endpoint::destroy_qp>(way.sender.id), 0);
  for (std::uint64_t i = 0; i < 8; ++i) EXPECT_EQ(received(*c, shared).wr_id, i);
  EXPECT_EQ(c->mismatch(into, 0, 64_KiB, 4), -1);
}

TEST_P(XrcShm, DeregistrationInTheQueuesProcessIsAPromiseToo) {
  start();
  constexpr std::uint64_t kSize = 256_KiB;
  const RegionInfo whole = c->allocate(memory(), kSize);
  a->set(from, 0, kSize, 0x99);
  for (std::uint32_t round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    const RegionInfo target = c->register_part(whole, 0, kSize);
    c->set(whole, 0, kSize, 0);
    auto storm = std::async(std::launch::async, [&] {
      return a->call<&Endpoint::storm>(
          way.sender.id, to(shared, write(1, slice(from, 0, kSize), target)), 8u, kForEver);
    });
    ASSERT_TRUE(wait_until([&] { return c->load(whole, kSize - 8) != 0; }));
    ASSERT_EQ(c->deregister(target), 0);
    c->fill(whole, 0, kSize, round);
    const auto failures = storm.get();
    ASSERT_FALSE(failures.empty());
    EXPECT_EQ(failures[0].status, IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(c->mismatch(whole, 0, kSize, round), -1);
    EXPECT_EQ(b->take_async_event().type, IBV_EVENT_QP_ACCESS_ERR);
    ASSERT_EQ(a->to_state(way.sender, IBV_QPS_RESET), 0);
    ASSERT_EQ(b->to_state(way.target, IBV_QPS_RESET), 0);
    a->connect(way.sender, way.target);
    b->connect(way.target, way.sender);
  }
}

/// Two whose openers went while nobody looked; the first cannot end yet, since its initiator may be
/// at work in this moment.
TEST_P(XrcShm, ATargetThatCannotEndYetKeepsNoOtherFromIt) {
  const AllowedLog says_why("was stopped in the middle of a copy");
  constexpr std::uint64_t kLong = 16_MiB;
  start();
  const auto d = process();
  const RegionInfo there = d->allocate(memory(), kLong);
  const RegionInfo room = c->allocate(memory(), kLong);
  d->set(there, 0, kLong, 0x99);
  bool waited = false;
  for (std::uint32_t round = 0; round < 10 && !waited; ++round) {
    SCOPED_TRACE(round);
    const Connection busy = connect(*d, *b);
    const Connection idle = connect(*a, *b);
    const QpInfo opened[] = {c->call<&Endpoint::open_qp>(busy.target.qpn),
                             c->call<&Endpoint::open_qp>(idle.target.qpn)};
    for (const Connection& way_of : {busy, idle})
      ASSERT_EQ(b->call<&Endpoint::destroy_qp>(way_of.target.id), 0);
    c->set(room, 0, kLong, 0);
    auto storm = std::async(std::launch::async, [&, qp = busy.sender.id] {
      return d->call<&Endpoint::storm>(qp, to(shared, write(1, slice(there, 0, kLong), room)), 8u,
                                       kForEver);
    });
    ASSERT_TRUE(wait_until([&] { return c->load(room, 0) != 0; }));
    b->child().signal(SIGSTOP);
    ASSERT_TRUE(wait_until([&] { return b->child().is_stopped(); }));
    for (const QpInfo& handle : opened) ASSERT_EQ(c->call<&Endpoint::destroy_qp>(handle.id), 0);
    d->child().signal(SIGSTOP);
    ASSERT_TRUE(wait_until([&] { return d->child().is_stopped(); }));
    b->child().signal(SIGCONT);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(wait_until([&] {
      expect_posted(a->post_send(idle.sender, to(shared, write(2, slice(from, 0, 8), into))));
      return a->poll_sends(idle.sender, 1)[0].status != IBV_WC_SUCCESS;
    }));
    waited = std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(1500);
    d->child().signal(SIGCONT);
    const auto failures = storm.get();
    ASSERT_FALSE(failures.empty()) << "it ends, too";
    EXPECT_EQ(failures[0].status, IBV_WC_RETRY_EXC_ERR);
  }
  // A stop between two copies leaves nothing to wait for; nor does one while others copy.
  EXPECT_TRUE(waited || memory() != MemoryKind::kMapped) << "never met in the middle of a copy";
}

TEST_P(XrcShm, ManySendersAndManyQueuesLoseNothing) {
  constexpr std::uint32_t kQueues = 4, kSenders = 4;
  constexpr std::uint64_t kEach = 400;
  start();
  const auto d = process();
  std::vector<Connection> ways;
  std::vector<Side*> senders;
  for (std::uint32_t i = 0; i < kSenders; ++i) {
    senders.push_back(i % 2 == 0 ? a.get() : d.get());
    ways.push_back(connect(*senders[i], *b));
  }
  const RegionInfo d_from = d->allocate(memory(), 4096);
  std::vector<SrqInfo> queues;
  std::vector<std::uint64_t> posted(kQueues, 0), got(kQueues, 0);
  for (std::uint32_t i = 0; i < kQueues; ++i) queues.push_back(queue(*c));
  std::vector<std::uint64_t> sent(kSenders, 0), done(kSenders, 0);
  const auto feed = [&](std::uint32_t q) {
    std::vector<Receive> receives;
    for (; posted[q] - got[q] < 64; ++posted[q])
      receives.push_back({posted[q], slice(into, posted[q] % 64 * 256, 256)});
    expect_posted(c->post_srq_receive(queues[q], receives));
  };
  std::uint64_t all = 0;
  while (all < kSenders * kEach) {
    for (std::uint32_t q = 0; q < kQueues; ++q) feed(q);
    for (std::uint32_t s = 0; s < kSenders; ++s) {
      std::vector<Request> batch;
      for (; sent[s] < kEach && sent[s] - done[s] < 32; ++sent[s])
        batch.push_back(to(queues[(sent[s] + s) % kQueues],
                           send(sent[s], slice(s % 2 == 0 ? from : d_from, 0, sent[s] % 200))));
      if (!batch.empty()) expect_posted(senders[s]->post_send(ways[s].sender, batch));
      for (const ibv_wc& wc : senders[s]->poll_once(ways[s].sender.send_cq, 32)) {
        ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
        ASSERT_EQ(wc.wr_id, done[s]++) << "in the order of posting, whichever the queue";
      }
    }
    for (std::uint32_t q = 0; q < kQueues; ++q) {
      for (const ibv_wc& wc : c->poll_once(queues[q].cq, 64)) {
        ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
        ASSERT_EQ(wc.wr_id, got[q]++);
        ++all;
      }
    }
  }
}

TEST_P(XrcShm, OnlyTheMakerOfATargetModifiesIt) {
  start();
  const QpInfo opened = c->call<&Endpoint::open_qp>(way.target.qpn);
  {
    AllowedLog("verbatim: ibv_modify_qp: XRC_RECV QP");
    EXPECT_EQ(c->to_state(opened, IBV_QPS_ERR), EOPNOTSUPP);
  }
  EXPECT_EQ(c->state(opened), IBV_QPS_RTS);
}

}  // namespace
}  // namespace verbatim::harness
