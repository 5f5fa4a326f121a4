// SPDX-License-Identifier: BSD-2-Clause
//
// When one of several senders to a shared receive queue is killed: what it had sent whole is
// delivered, its own queue pair ends with its events, and every receive that it used nothing of is
// there for the others.
#include <signal.h>

#include <algorithm>
#include <set>
#include <thread>

#include "tests/support/expect.hpp"

namespace verbatim::harness {
namespace {

constexpr std::int32_t kSoonMs = 5000;
constexpr std::uint64_t kDepth = 32;
constexpr std::uint64_t kSlot = 1_MiB;

class SharedReceiveDeath : public ::testing::TestWithParam<Setting> {
 protected:
  struct Sender {
    Side side{std::map<std::string, std::string>{}};
    QpInfo qp;    ///< its own
    QpInfo ours;  ///< of the shared receives
    RegionInfo memory;
  };

  SharedReceiveDeath() : here(std::make_shared<Session>()) {
    SrqWish wish;
    wish.depth = kDepth;
    srq = here.create_srq(wish);
    cq = here.call<&Endpoint::create_cq>(512, 0);
    to = here.allocate(GetParam().memory, kDepth * kSlot);
    for (std::uint64_t i = 0; i < kDepth; ++i) post(i);
  }
  void post(std::uint64_t id) {
    expect_posted(here.post_srq_receive(srq, {receive(id, slice(to, id * kSlot, kSlot))}));
    EXPECT_TRUE(posted.insert(id).second);
  }
  std::unique_ptr<Sender> start(std::uint32_t seed) {
    auto sender = std::make_unique<Sender>();
    sender->qp = sender->side.create_qp();
    QpWish sharing;
    sharing.srq = srq.id;
    sharing.receive_cq = cq;
    sender->ours = here.create_qp(sharing);
    here.connect(sender->ours, sender->qp);
    sender->side.connect(sender->qp, sender->ours);
    sender->memory = sender->side.allocate(GetParam().memory, kSlot);
    sender->side.fill(sender->memory, 0, kSlot, seed);
    return sender;
  }
  void send_one(Sender& from, std::uint64_t id, std::uint64_t size) {
    expect_posted(from.side.post_send(from.qp, send(id, slice(from.memory, 0, size))));
    expect_wc(from.side.poll_sends(from.qp, 1, kSoonMs)[0], id, IBV_WC_SEND, from.qp);
  }
  /// A receive that was posted, with a whole message of this sender.
  void expect_whole(const ibv_wc& wc, std::uint32_t seed) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << "wr " << wc.wr_id;
    EXPECT_EQ(posted.erase(wc.wr_id), 1u) << "used twice: " << wc.wr_id;
    EXPECT_EQ(here.mismatch(to, wc.wr_id * kSlot, wc.byte_len, seed), -1);
  }
  /// Of the one that died: that it did, and that its queue pair takes no more; once each. Who polls
  /// while the service thread is at it may say the second first.
  void expect_last_words(const Sender& dead) {
    std::multiset<std::int32_t> said;
    for (int i = 0; i < 2; ++i) {
      const AsyncEvent event = here.take_async_event(kSoonMs);
      EXPECT_EQ(event.qp, dead.ours.id);
      said.insert(event.type);
    }
    EXPECT_EQ(said,
              (std::multiset<std::int32_t>{IBV_EVENT_QP_FATAL, IBV_EVENT_QP_LAST_WQE_REACHED}));
    EXPECT_EQ(here.take_async_event(0).type, -1);
    EXPECT_EQ(here.state(dead.ours), IBV_QPS_ERR);
  }
  /// Every receive that is posted takes one message of `living`.
  void expect_all_receives_for(Sender& living, std::uint32_t seed) {
    EXPECT_TRUE(here.poll_once(cq, 1).empty());
    for (std::uint64_t left = posted.size(); left != 0; --left) {
      send_one(living, left, 64);
      const ibv_wc wc = here.call<&Endpoint::poll>(cq, 1, kSoonMs)[0];
      EXPECT_EQ(wc.qp_num, living.ours.qpn);
      expect_whole(wc, seed);
    }
    EXPECT_TRUE(posted.empty());
    EXPECT_EQ(here.state(living.ours), IBV_QPS_RTS);
  }

  Side here;
  SrqInfo srq;
  std::int32_t cq = -1;
  RegionInfo to;
  std::set<std::uint64_t> posted;  ///< receives that are
};
RUN_OVER_SETTINGS(SharedReceiveDeath, between_processes());

TEST_P(SharedReceiveDeath, WhatItHadSentIsDeliveredAmongTheMessagesOfOthers) {
  const auto living = start(1);
  const auto doomed = start(2);
  constexpr std::uint64_t kSizes[] = {8, 64, 220, 4096};
  for (std::uint64_t i = 0; i < 4; ++i) {
    send_one(*doomed, i, kSizes[i]);
    send_one(*living, i, kSizes[i]);
  }
  doomed->side.child().kill_and_collect();
  std::uint64_t next_of_living = 0, next_of_dead = 0;
  for (const ibv_wc& wc : here.call<&Endpoint::poll>(cq, 8, kSoonMs)) {
    const bool dead = wc.qp_num == doomed->ours.qpn;
    const std::uint64_t which = dead ? next_of_dead++ : next_of_living++;
    EXPECT_EQ(wc.byte_len, kSizes[which % 4]);
    expect_whole(wc, dead ? 2 : 1);
  }
  EXPECT_EQ(next_of_living, 4u);
  EXPECT_EQ(next_of_dead, 4u);
  // The news comes when it comes; then the queue pair is looked at until it is empty.
  ASSERT_TRUE(wait_until([&] { return here.state(doomed->ours) == IBV_QPS_ERR; }, kSoonMs));
  EXPECT_TRUE(here.poll_once(cq, 1).empty());
  expect_last_words(*doomed);
  expect_all_receives_for(*living, 1);
}

TEST_P(SharedReceiveDeath, InTheMidstOfMessagesTakesNoReceiveAlong) {
  const auto living = start(1);
  for (const std::uint64_t size : {std::uint64_t{64}, 64_KiB, 1_MiB}) {
    SCOPED_TRACE(size);
    const auto doomed = start(2);
    std::thread storm([&] {
      try {
        doomed->side.call<&Endpoint::storm>(doomed->qp.id, send(1, slice(doomed->memory, 0, size)),
                                            8u, ~std::uint64_t{0});
      } catch (const PeerGone&) {
      }
    });
    std::uint64_t heard_dead = 0, heard_living = 0, unfinished = 0;
    const auto take = [&] {
      for (const ibv_wc& wc : here.poll_once(cq, 8)) {
        const bool dead = wc.qp_num == doomed->ours.qpn;
        if (dead && wc.status == IBV_WC_WR_FLUSH_ERR) {  // the one that it was at
          ++unfinished;
          EXPECT_EQ(posted.erase(wc.wr_id), 1u);
        } else {
          ++(dead ? heard_dead : heard_living);
          expect_whole(wc, dead ? 2 : 1);
        }
        post(wc.wr_id);
      }
    };
    EXPECT_TRUE(wait_until([&] { return take(), heard_dead >= 5; }));
    doomed->side.child().signal(SIGKILL);
    storm.join();
    doomed->side.child().kill_and_collect();
    for (std::uint64_t i = 0; i < 8; ++i) {
      // The dead one's may hold all receives until they are polled.
      expect_posted(living->side.post_send(living->qp, send(i, slice(living->memory, 0, 64))));
      EXPECT_TRUE(wait_until([&] { return take(), heard_living > i; }, kSoonMs));
      living->side.poll_sends(living->qp, 1, kSoonMs);
    }
    EXPECT_TRUE(
        wait_until([&] { return take(), here.state(doomed->ours) == IBV_QPS_ERR; }, kSoonMs));
    // Once in error, a look that finds nothing says that it was the last.
    EXPECT_TRUE(wait_until(
        [&] {
          const std::uint64_t before = heard_dead + unfinished;
          take();
          return heard_dead + unfinished == before;
        },
        kSoonMs));
    EXPECT_LE(unfinished, 1u);
    expect_last_words(*doomed);
  }
  EXPECT_EQ(posted.size(), kDepth);
  expect_all_receives_for(*living, 1);
}

}  // namespace
}  // namespace verbatim::harness
