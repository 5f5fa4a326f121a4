// SPDX-License-Identifier: BSD-2-Clause
//
// A receive queue that was made for many has memory for those that are posted at once. It grows when
// these are more than ever before, while a sender looks at what is posted: its messages come all the
// same, in order, each into its own receive.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/deadline.hpp"
#include "tests/support/expect.hpp"
#include "tests/support/handles.hpp"
#include "tests/support/held_memory.hpp"
#include "tests/support/rc_states.hpp"

namespace verbatim::harness::receive_growth {
namespace {

constexpr std::uint32_t kDeep = 2500;
constexpr std::uint32_t kRoom = 1100;
constexpr std::uint32_t kSlots = 512;

/// A sender, and a receiver with a deep queue of which few are posted.
class Stage {
 public:
  explicit Stage(Setting setting) : pair_(setting, wish()) {
    from_ = pair_.a.allocate(setting.memory, 4096);
    to_ = pair_.b.allocate(setting.memory, std::uint64_t{kSlots} * kRoom);
    pair_.a.fill(from_, 0, 4096, 1);
    source_ = pair_.a.peek(from_, 0, 4096);
  }
  void post(std::uint32_t count) {
    std::vector<Receive> receives;
    for (std::uint32_t i = 0; i < count; ++i, ++posted_)
      receives.push_back(receive(posted_, slice(to_, posted_ % kSlots * kRoom, kRoom)));
    expect_posted(pair_.b.post_receive(pair_.qb, receives));
  }
  void send_some(std::uint32_t count) {
    std::vector<Request> requests;
    for (std::uint32_t i = 0; i < count; ++i, ++sent_)
      requests.push_back(send(sent_, slice(from_, sent_ % 64, length(sent_))));
    expect_posted(pair_.a.post_send(pair_.qa, requests));
  }
  void take(std::uint32_t count) {
    while (count != 0) {
      const std::uint32_t now = std::min(count, kSlots);
      for (const ibv_wc& wc : pair_.b.poll_receives(pair_.qb, now)) {
        ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
        ASSERT_EQ(wc.wr_id, taken_);
        ASSERT_EQ(wc.byte_len, length(taken_));
        ++taken_;
      }
      count -= now;
    }
    // What lies in a slot is the last of several messages, once nothing is on its way.
    if (taken_ != sent_) return;
    for (std::uint64_t i = taken_ - std::min<std::uint64_t>(taken_, kSlots); i != taken_; ++i) {
      const auto got = pair_.b.peek(to_, i % kSlots * kRoom, length(i));
      ASSERT_TRUE(std::equal(got.begin(), got.end(), source_.begin() + i % 64)) << i;
    }
  }
  void hear_of_sends(std::uint32_t count) {
    for (const ibv_wc& wc : pair_.a.poll_sends(pair_.qa, count))
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
  }
  Pair& pair() { return pair_; }
  /// Of a new connection.
  void forget() { posted_ = sent_ = taken_ = 0; }

 private:
  static PairWish wish() {
    PairWish wish;
    wish.a.send_depth = wish.b.receive_depth = kDeep;
    wish.a.cq_depth = wish.b.cq_depth = 2 * kDeep;
    return wish;
  }
  static std::uint32_t length(std::uint64_t message) {
    constexpr std::uint32_t kLengths[] = {8, 56, 57, 700, 0, 1024, 1100};
    return kLengths[message % std::size(kLengths)];
  }

  Pair pair_;
  RegionInfo from_, to_;
  std::vector<std::uint8_t> source_;
  std::uint64_t posted_ = 0, sent_ = 0, taken_ = 0;
};

class ReceivesOfADeepQueue : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(ReceivesOfADeepQueue, each_way());

/// More at once each time, of which the last wait already when the queue grows.
void play(Stage& stage) {
  for (const std::uint32_t count : {1u, 100u, 128u, 129u, 700u, 1024u, 1025u, kDeep}) {
    const std::uint32_t before = count - count / 3;
    stage.post(before);
    stage.send_some(before / 2);
    stage.take(before / 2);
    stage.post(count / 3);
    stage.send_some(count - before / 2);
    stage.take(count - before / 2);
    stage.hear_of_sends(count);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST_P(ReceivesOfADeepQueue, AreUsedUpInTheOrderOfPostingWhileItGrows) {
  Stage stage(GetParam());
  play(stage);
}

TEST_P(ReceivesOfADeepQueue, AreFoundBySendsThatWaitedForThem) {
  Stage stage(GetParam());
  stage.post(100);
  stage.send_some(2000);
  stage.take(100);
  for (const std::uint32_t more : {150u, 1200u, 550u}) {
    stage.post(more);
    stage.take(more);
    if (HasFatalFailure()) return;
  }
  stage.hear_of_sends(2000);
}

TEST_P(ReceivesOfADeepQueue, AreFewAgainInANewConnection) {
  Stage stage(GetParam());
  play(stage);
  stage.pair().reconnect();
  stage.forget();
  play(stage);
}

TEST_P(ReceivesOfADeepQueue, AreAsManyAsItWasMadeForAndNoMore) {
  Stage stage(GetParam());
  stage.post(1);
  stage.send_some(1);
  stage.take(1);
  for (std::uint32_t i = 0; i < 5; ++i) stage.post(kDeep / 5);
  Pair& pair = stage.pair();
  EXPECT_EQ(pair.b.post_receive(pair.qb, {receive(0)}).error, ENOMEM);
  stage.send_some(kDeep - 1);
  stage.take(kDeep - 1);
  stage.hear_of_sends(kDeep);
}

/// Of several pairs.
struct Queues {
  static constexpr std::uint32_t kCompletions = 8192;
  explicit Queues(const Session& of) : session(of), sent(make()), taken(make()) {}
  CqHandle make() const {
    return CqHandle(ibv_create_cq(session.context.get(), kCompletions, nullptr, nullptr, 0));
  }
  const Session& session;
  CqHandle sent, taken;
};

/// Two queue pairs of this process, of which one has a deep receive queue.
class DeepPair {
 public:
  static constexpr std::uint32_t kDepth = 4096;

  explicit DeepPair(const Queues& queues, std::uint32_t depth = kDepth)
      : queues_(queues), from_(make(256, 1)), to_(make(1, depth)) {
    for (const auto& [qp, remote] : {std::pair{to_.get(), from_.get()}, {from_.get(), to_.get()}}) {
      RcWay way;
      way.remote_qpn = remote->qp_num;
      way.rnr_retry = 7;
      for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS})
        EXPECT_EQ(modify_rc(qp, state, way), 0);
    }
  }
  int post_receive(std::uint64_t number) {
    ibv_recv_wr wr{};
    ibv_recv_wr* bad;
    ibv_sge none{};
    wr.wr_id = number;
    wr.sg_list = &none;
    wr.num_sge = 1;
    return ibv_post_recv(to_.get(), &wr, &bad);
  }
  bool try_to_send() {
    ibv_send_wr wr{};
    ibv_send_wr* bad;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    if (ibv_post_send(from_.get(), &wr, &bad) == 0) return true;
    hear();
    return false;
  }
  /// Takes completions of sends.
  void hear() {
    while (const std::uint32_t got = poll(queues_.sent, [](const ibv_wc&) {})) heard_ += got;
  }
  std::uint64_t heard() const { return heard_; }
  template <class F>
  std::uint32_t take(F f) {
    return poll(queues_.taken, f);
  }

 private:
  QpHandle make(std::uint32_t sends, std::uint32_t receives) const {
    ibv_qp_init_attr init{};
    init.send_cq = queues_.sent.get();
    init.recv_cq = queues_.taken.get();
    init.qp_type = IBV_QPT_RC;
    init.cap = {.max_send_wr = sends,
                .max_recv_wr = receives,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
    return QpHandle(ibv_create_qp(queues_.session.pd.get(), &init));
  }
  template <class F>
  static std::uint32_t poll(const CqHandle& cq, F f) {
    ibv_wc wc[64];
    const int got = ibv_poll_cq(cq.get(), 64, wc);
    for (int i = 0; i < got; ++i) {
      EXPECT_EQ(wc[i].status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc[i].status);
      f(wc[i]);
    }
    return static_cast<std::uint32_t>(std::max(got, 0));
  }

  const Queues& queues_;
  QpHandle from_, to_;
  std::uint64_t heard_ = 0;
};

TEST(ReceivesThatAThreadPosts, AreTakenByAnotherInOrderWhileTheQueueGrows) {
  constexpr std::uint64_t kMessages = 6000;
  const Session session;
  const Queues queues(session);
  for (std::uint32_t round = 0; round < 10 && !::testing::Test::HasFailure(); ++round) {
    DeepPair pair(queues);
    std::atomic<std::uint64_t> posted{0}, taken{0};
    std::thread sender([&] {
      for (std::uint64_t i = 0; i < kMessages && !::testing::Test::HasFailure(); ++i)
        EXPECT_TRUE(wait_until([&] { return pair.try_to_send(); }));
    });
    // Every other time nothing is taken before these are posted; else ever more wait.
    const std::uint64_t first = round % 2 == 0 ? 1500 : 0;
    std::thread poster([&] {
      for (std::uint64_t i = 0; i < kMessages && !::testing::Test::HasFailure(); ++i) {
        const std::uint64_t most = std::max(first, 60 + i / 2);
        EXPECT_TRUE(wait_until([&] { return i - taken.load() < most; }));
        EXPECT_EQ(pair.post_receive(i), 0);
        posted.store(i + 1);
      }
    });
    EXPECT_TRUE(wait_until([&] { return posted.load() >= first; }));
    std::uint64_t next = 0;
    EXPECT_TRUE(wait_until([&] {
      pair.take([&](const ibv_wc& wc) { EXPECT_EQ(wc.wr_id, next++); });
      taken.store(next);
      return next == kMessages;
    }));
    sender.join();
    poster.join();
    pair.hear();
    EXPECT_EQ(pair.heard(), kMessages);
  }
}

/// Receives that it was made for.
class MemoryOfAReceiveQueue : public ::testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Depth, MemoryOfAReceiveQueue,
                         ::testing::Values(129u, 512u, 2048u, 4096u, 32768u));

TEST_P(MemoryOfAReceiveQueue, IsOfThoseThatArePostedAtOnce) {
  constexpr std::size_t kPairs = 32;
  constexpr std::uint32_t kAtOnce = 128;
  const Session session;
  const Queues queues(session);
  // Each place of the queue has its turn, if it has any, and each of the completion queues.
  const auto use = [](DeepPair& pair) {
    for (std::uint64_t i = 0; i < std::max(GetParam(), Queues::kCompletions); i += kAtOnce) {
      for (std::uint64_t j = i; j < i + kAtOnce; ++j) ASSERT_EQ(pair.post_receive(j), 0);
      // Few at once, which the sender's first ring holds.
      for (std::uint32_t sent = 0; sent != kAtOnce; sent += 16) {
        for (std::uint32_t j = 0; j < 16; ++j) ASSERT_TRUE(pair.try_to_send());
        std::uint32_t got = 0;
        ASSERT_TRUE(wait_until([&] { return (got += pair.take([](const ibv_wc&) {})) == 16; }));
        pair.hear();
      }
    }
  };
  std::vector<DeepPair> pairs;
  pairs.reserve(kPairs + 1);
  use(pairs.emplace_back(queues, GetParam()));
  const HeldMemory before = held_by(::getpid());
  ASSERT_GT(before.shared, 0);
  while (pairs.size() != kPairs + 1) use(pairs.emplace_back(queues, GetParam()));
  const HeldMemory after = held_by(::getpid());
  // Of both ends.
  EXPECT_LE((after.shared - before.shared) / std::int64_t{kPairs}, 2 * 12288);
#if !defined(VBT_UNDER_SANITIZER)
  EXPECT_LE((after.shared + after.own - before.shared - before.own) / std::int64_t{kPairs},
            2 * 12288);
#endif
}

TEST(MemoryOfADeepReceiveQueue, IsThereForOthersWhenTheQueuePairIsGone) {
  const Session session;
  const Queues queues(session);
  HeldMemory before;
  for (std::uint32_t round = 0; round < 200; ++round) {
    if (round == 10) before = held_by(::getpid());
    DeepPair pair(queues);
    for (std::uint64_t i = 0; i < DeepPair::kDepth; ++i) ASSERT_EQ(pair.post_receive(i), 0);
    ASSERT_EQ(pair.post_receive(0), ENOMEM);
  }
  ASSERT_GT(before.shared, 0);
  // A queue's places take some 100 KiB.
  EXPECT_LE(held_by(::getpid()).shared - before.shared, 1 << 20);
}

}  // namespace
}  // namespace verbatim::harness::receive_growth
