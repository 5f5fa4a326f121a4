// SPDX-License-Identifier: BSD-2-Clause
//
// When a process with unreliable queue pairs (UD, groups, UC) is killed, nobody is told: what was
// on its way arrives whole or not at all, what is sent to it is lost without a word, and everybody
// else goes on at once (providers/shm/design/ud.md).
#include <signal.h>

#include <chrono>
#include <thread>

#include "tests/shm/datagram_group.hpp"
#include "tests/support/deadline.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/process_census.hpp"

namespace verbatim::harness {
namespace {

constexpr std::uint64_t kBytes = 4096;
constexpr std::uint64_t kDatagramSlot = kHeader + kBytes;
constexpr std::uint32_t kDatagrams = 64;
/// Far below the harness's own patience, and below a second of waiting for each of the datagrams.
constexpr std::int32_t kInTimeMs = 5000;

/// A process, or this one, with a queue pair and memory.
struct Speaker {
  Side side;
  QpInfo qp;
  RegionInfo memory;  ///< to send from, `kDatagrams` slots to receive into behind it

  template <class Where>
  Speaker(Where&& where, ibv_qp_type type, MemoryKind kind) : side(std::forward<Where>(where)) {
    QpWish wish;
    wish.type = type;
    wish.send_depth = wish.receive_depth = kDatagrams;
    qp = side.create_qp(wish);
    memory = side.allocate(kind, kBytes + kDatagrams * kDatagramSlot);
    if (type == IBV_QPT_UD) side.connect(qp, qp);
  }
  void post(std::uint64_t id) {
    expect_posted(side.post_receive(
        qp, receive(id, slice(memory, kBytes + id * kDatagramSlot, kDatagramSlot))));
  }
  void post_all() {
    for (std::uint64_t id = 0; id < kDatagrams; ++id) post(id);
  }
  /// To `ah` under `qpn`; all of what there is to send.
  Request say(std::uint64_t id, std::int32_t ah, std::uint32_t qpn, std::uint64_t size = kBytes) {
    return datagram(id, slice(memory, 0, size), ah, qpn, kQkey);
  }
  std::int32_t ah_to(const Speaker& other) { return side.call<&Endpoint::create_ah>(other.qp, 0); }
  /// Whole, or nothing has come.
  void expect_whole(const ibv_wc& wc, std::uint32_t seed) {
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << "wr " << wc.wr_id;
    ASSERT_EQ(wc.byte_len, kDatagramSlot);
    EXPECT_EQ(side.mismatch(memory, kBytes + wc.wr_id * kDatagramSlot + kHeader, kBytes, seed), -1);
  }
  void expect_undisturbed() {
    EXPECT_EQ(side.state(qp), IBV_QPS_RTS);
    EXPECT_EQ(side.take_async_event(0).type, -1);
  }
};

std::map<std::string, std::string> a_child() { return {}; }

class UnreliableDeath : public ::testing::TestWithParam<Setting> {
 protected:
  UnreliableDeath() : here(std::make_shared<Session>(), IBV_QPT_UD, GetParam().memory) {}
  std::unique_ptr<Speaker> start(ibv_qp_type type = IBV_QPT_UD, std::uint32_t seed = 0) {
    auto speaker = std::make_unique<Speaker>(a_child(), type, GetParam().memory);
    speaker->side.fill(speaker->memory, 0, kBytes, seed);
    return speaker;
  }
  /// Sends and awaits that it has left, as it does to the living and to the dead.
  void send_one(const Request& request) {
    expect_posted(here.side.post_send(here.qp, request));
    expect_wc(here.side.poll_sends(here.qp, 1, kInTimeMs)[0], request.wr_id, IBV_WC_SEND, here.qp);
  }

  Speaker here;
};
RUN_OVER_SETTINGS(UnreliableDeath, between_processes());

TEST_P(UnreliableDeath, OfASenderLeavesWholeDatagramsAndEveryReceive) {
  here.post_all();
  std::uint64_t in_use = ~std::uint64_t{0};  // a bit for each receive that is posted
  static_assert(kDatagrams == 64);
  const auto newcomer = start(IBV_QPT_UD, 1000);
  const std::int32_t newcomers_way = newcomer->ah_to(here);
  std::uint64_t heard_newcomer = 0;
  std::map<std::uint32_t, std::uint32_t> seeds{{newcomer->qp.qpn, 1000}};  // of each sender
  // Takes what is there, and posts the receives again if asked to; how many.
  const auto take = [&](bool again) {
    const auto got = here.side.poll_once(here.qp.receive_cq, kDatagrams);
    for (const ibv_wc& wc : got) {
      EXPECT_LT(wc.wr_id, kDatagrams);
      EXPECT_NE(in_use & (std::uint64_t{1} << wc.wr_id), 0u) << "used twice: " << wc.wr_id;
      EXPECT_EQ(seeds.count(wc.src_qp), 1u);
      here.expect_whole(wc, seeds[wc.src_qp]);
      if (wc.src_qp == newcomer->qp.qpn) ++heard_newcomer;
      if (again) here.post(wc.wr_id);
      if (!again) in_use &= ~(std::uint64_t{1} << wc.wr_id);
    }
    return got.size();
  };
  for (std::uint32_t round = 0; round < 4; ++round) {
    SCOPED_TRACE(round);
    const auto doomed = start(IBV_QPT_UD, round);
    seeds[doomed->qp.qpn] = round;
    const Request words = doomed->say(1, doomed->ah_to(here), here.qp.qpn);
    std::thread speech([&] {
      try {
        doomed->side.call<&Endpoint::storm>(doomed->qp.id, words, 16u, ~std::uint64_t{0});
      } catch (const PeerGone&) {
      }
    });
    std::uint64_t heard = 0;
    const std::uint64_t enough = std::uint64_t{1} << (3 * round);
    EXPECT_TRUE(wait_until([&] { return (heard += take(true)) >= enough; }));
    doomed->side.child().signal(SIGKILL);
    speech.join();
    doomed->side.child().kill_and_collect();
    heard_newcomer = 0;
    // Its last ones may stand before the new one's, which is lost while no receive is left.
    EXPECT_TRUE(wait_until(
        [&] {
          expect_posted(
              newcomer->side.post_send(newcomer->qp, newcomer->say(2, newcomers_way, here.qp.qpn)));
          newcomer->side.poll_sends(newcomer->qp, 1, kInTimeMs);
          take(true);
          return heard_newcomer != 0;
        },
        kInTimeMs));
  }
  // Each receive is still there for one datagram.
  EXPECT_TRUE(wait_until(
      [&] {
        expect_posted(
            newcomer->side.post_send(newcomer->qp, newcomer->say(3, newcomers_way, here.qp.qpn)));
        newcomer->side.poll_sends(newcomer->qp, 1, kInTimeMs);
        take(false);
        return in_use == 0;
      },
      kInTimeMs))
      << "receives that are lost: " << std::hex << in_use;
  here.expect_undisturbed();
}

TEST_P(UnreliableDeath, OfAReceiverIsNoErrorOfTheSendersAndTheNextIsReached) {
  here.side.fill(here.memory, 0, kBytes, 7);
  const auto living = start();
  living->post_all();
  const std::int32_t to_living = here.ah_to(*living);
  std::uint64_t for_living = 0;
  for (std::uint64_t round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    const auto doomed = start();
    doomed->post_all();
    const std::int32_t ah = here.ah_to(*doomed);
    send_one(here.say(1, ah, doomed->qp.qpn));
    doomed->expect_whole(doomed->side.poll_receives(doomed->qp, 1)[0], 7);
    if (round == 1) {  // it takes nothing any more, and dies with much in its hands
      std::vector<Request> many;
      for (std::uint64_t i = 0; i < 40; ++i) many.push_back(here.say(i, ah, doomed->qp.qpn));
      expect_posted(here.side.post_send(here.qp, many));
      doomed->side.child().kill_and_collect();
      for (const ibv_wc& wc : here.side.poll_sends(here.qp, 40, kInTimeMs))
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    } else {
      doomed->side.child().kill_and_collect();
    }
    // With the news still on its way, and after it; what others get is not touched by it.
    // A full stream ring holds up the next, until the news has come: then nothing waits for the
    // dead.
    int slow = 0;
    for (std::uint64_t i = 0; i < 40; ++i) {
      const auto before = std::chrono::steady_clock::now();
      send_one(here.say(i, ah, doomed->qp.qpn, i % 8 == 0 ? 8 : kBytes));
      if (std::chrono::steady_clock::now() - before > std::chrono::milliseconds(90)) ++slow;
      send_one(here.say(i, to_living, living->qp.qpn));
      const ibv_wc wc = living->side.poll_receives(living->qp, 1, kInTimeMs)[0];
      EXPECT_EQ(wc.wr_id, for_living++ % kDatagrams);
      living->expect_whole(wc, 7);
      living->post(wc.wr_id);
    }
    EXPECT_LT(slow, 15);
  }
  here.expect_undisturbed();
}

TEST_P(UnreliableDeath, OfManyReceiversLeavesNothingOfThemWithTheirSender) {
  constexpr int kRounds = 12;
  ProcessCensus early;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    const auto doomed = start();
    doomed->post(0);
    send_one(here.say(1, here.ah_to(*doomed), doomed->qp.qpn));
    (void)doomed->side.poll_receives(doomed->qp, 1);
    if (round == 1) early = ProcessCensus::take();
    doomed->side.child().kill_and_collect();
  }
  // No more than while the second of them lived: a server lasts longer than its clients.
  ProcessCensus late;
  EXPECT_TRUE(wait_until([&] {
    late = ProcessCensus::take();
    return late.files_mapped.size() <= early.files_mapped.size() &&
           late.descriptors.size() <= early.descriptors.size();
  })) << left_behind(early, late);
  here.expect_undisturbed();
}

/// Nobody else is left who could ask it to look.
TEST_P(UnreliableDeath, OfManySendersLeavesNothingOfThemWithTheirReceiverButWhatTheySent) {
  here.post_all();
  const std::size_t alone = ProcessCensus::take().segments();
  std::vector<std::unique_ptr<Speaker>> senders;
  const auto speak = [&](Speaker& sender) {
    expect_posted(sender.side.post_send(sender.qp, sender.say(1, sender.ah_to(here), here.qp.qpn)));
    expect_wc(sender.side.poll_sends(sender.qp, 1)[0], 1, IBV_WC_SEND, sender.qp);
  };
  for (std::uint32_t k = 0; k < 6; ++k) {
    senders.push_back(start(IBV_QPT_UD, k));
    speak(*senders[k]);
    const ibv_wc wc = here.side.poll_receives(here.qp, 1)[0];
    EXPECT_EQ(wc.src_qp, senders[k]->qp.qpn);
    here.expect_whole(wc, k);
  }
  ASSERT_EQ(ProcessCensus::take().segments(), alone + 6);
  std::map<std::uint32_t, std::uint32_t> unheard;  // seeds
  for (std::uint32_t k = 0; k < 2; ++k) {
    speak(*senders[k]);
    unheard[senders[k]->qp.qpn] = k;
  }
  for (const auto& sender : senders) sender->side.child().kill_and_collect();
  EXPECT_TRUE(wait_until([&] { return ProcessCensus::take().segments() == alone + 2; }));
  for (const ibv_wc& wc : here.side.poll_receives(here.qp, 2, kInTimeMs)) {
    ASSERT_EQ(unheard.count(wc.src_qp), 1u);
    here.expect_whole(wc, unheard[wc.src_qp]);
    unheard.erase(wc.src_qp);
  }
  EXPECT_TRUE(wait_until([&] { return ProcessCensus::take().segments() == alone; }));
  here.expect_undisturbed();
}

constexpr std::uint16_t kNoLid = 0;
constexpr std::uint32_t kGroupQpn = 0xffffff;

ibv_gid a_group() {
  ibv_gid gid{};
  gid.raw[0] = 0xff;
  gid.raw[1] = 0x12;
  gid.raw[15] = 0x5d;
  return gid;
}

TEST_P(UnreliableDeath, OfAGroupsMemberDoesNotKeepTheOthersWaiting) {
  here.side.fill(here.memory, 0, kBytes, 7);
  const std::int32_t group = here.side.call<&Endpoint::create_multicast_ah>(a_group(), kNoLid);
  std::vector<std::unique_ptr<Speaker>> members;
  const auto join = [&] {
    members.push_back(start());
    members.back()->post_all();
    ASSERT_EQ(
        members.back()->side.call<&Endpoint::attach>(members.back()->qp.id, a_group(), kNoLid), 0);
  };
  const auto tell_all = [&](std::uint64_t times) {
    const auto start_time = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < times; ++i) {
      send_one(here.say(i, group, kGroupQpn));
      for (const auto& member : members) {
        const ibv_wc wc = member->side.poll_receives(member->qp, 1, kInTimeMs)[0];
        member->expect_whole(wc, 7);
        member->post(wc.wr_id);
      }
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start_time, std::chrono::milliseconds(kInTimeMs));
  };
  const auto kill_last = [&] {
    members.back()->side.child().kill_and_collect();
    members.pop_back();
  };
  join();
  join();
  join();
  tell_all(2);
  kill_last();
  tell_all(20);
  join();  // one that nobody has spoken to yet
  kill_last();
  tell_all(20);
  join();
  tell_all(20);
  here.expect_undisturbed();
  for (const auto& member : members)
    EXPECT_EQ(member->side.call<&Endpoint::detach>(member->qp.id, a_group(), kNoLid), 0);
}

TEST_P(UnreliableDeath, OfAUcPeerLosesWhatIsSentAndKeepsTheReceives) {
  Speaker uc(std::make_shared<Session>(), IBV_QPT_UC, GetParam().memory);
  for (std::uint32_t round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    const auto doomed = start(IBV_QPT_UC, round);
    uc.side.connect(uc.qp, doomed->qp);
    doomed->side.connect(doomed->qp, uc.qp);
    uc.post_all();
    doomed->post_all();
    const RegionInfo theirs = doomed->memory;
    for (std::uint64_t i = 0; i < 3; ++i) {
      expect_posted(
          doomed->side.post_send(doomed->qp, send(i, slice(theirs, 0, i == 0 ? 8 : kBytes))));
      expect_wc(doomed->side.poll_sends(doomed->qp, 1)[0], i, IBV_WC_SEND, doomed->qp);
    }
    expect_posted(uc.side.post_send(uc.qp, send(9, slice(uc.memory, 0, kBytes))));
    expect_wc(uc.side.poll_sends(uc.qp, 1)[0], 9, IBV_WC_SEND, uc.qp);
    doomed->side.child().kill_and_collect();
    // What it has sent is there.
    const auto got = uc.side.poll_receives(uc.qp, 3, kInTimeMs);
    expect_receive(got[0], 0, 8, uc.qp);
    for (std::uint64_t i = 1; i < 3; ++i) {
      expect_receive(got[i], i, kBytes, uc.qp);
      EXPECT_EQ(uc.side.mismatch(uc.memory, kBytes + i * kDatagramSlot, kBytes, round), -1);
    }
    const auto start_time = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < 20; ++i) {
      expect_posted(uc.side.post_send(uc.qp, i % 2 == 0
                                                 ? send(i, slice(uc.memory, 0, kBytes))
                                                 : write(i, slice(uc.memory, 0, kBytes), theirs)));
      expect_wc(uc.side.poll_sends(uc.qp, 1, kInTimeMs)[0], i,
                i % 2 == 0 ? IBV_WC_SEND : IBV_WC_RDMA_WRITE, uc.qp);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start_time, std::chrono::milliseconds(kInTimeMs));
    EXPECT_TRUE(uc.side.poll_once(uc.qp.receive_cq, 1).empty()) << "a receive was flushed";
    uc.expect_undisturbed();
    ASSERT_EQ(uc.side.to_state(uc.qp, IBV_QPS_RESET), 0);
  }
}

}  // namespace
}  // namespace verbatim::harness
