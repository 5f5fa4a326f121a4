// SPDX-License-Identifier: BSD-2-Clause
//
// Large messages to receivers that take now and then: they flow while somebody takes, go the rest
// of the way by themselves when nobody does, and each ends in its own receive, whatever stands
// behind it already.
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <future>

#include "tests/support/expect.hpp"

namespace verbatim::harness {
namespace {

class RcStream : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcStream, each_way());

class RcStreamOfProcesses : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(RcStreamOfProcesses, between_processes());

constexpr std::uint32_t kMessages = 8;
/// Below, at and beyond the pieces and the stream rings that messages flow through; small ones
/// between.
constexpr std::array<std::uint64_t, kMessages> kLengths{33'000, 1_MiB, 300'000, 40,
                                                        70'000, 2_MiB, 32_KiB,  600'001};
constexpr std::array<std::uint64_t, kMessages> kSlack{0, 4096, 1, 64, 100'000, 8, 0, 3};
constexpr std::uint64_t kGuard = 64;
constexpr std::uint8_t kUnwritten = 0xEE;

/// Rounds of eight messages, all in flight at once, to eight receives of other sizes.
class Stage {
 public:
  explicit Stage(Setting setting)
      : pair_(setting),
        from_(pair_.a.allocate(setting.memory, 2_MiB + kMessages)),
        to_(pair_.b.allocate(setting.memory, 8_MiB)) {
    pair_.a.fill(from_, 0, 2_MiB + kMessages, 1);
  }
  Side& a() { return pair_.a; }
  Side& b() { return pair_.b; }

  void post_receives(std::uint32_t round) {
    pair_.b.set(to_, 0, 8_MiB, kUnwritten);
    std::vector<Receive> receives;
    std::uint64_t offset = 0;
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      length_[i] = kLengths[(i * 3 + round) % kMessages];
      room_[i] = length_[i] + kSlack[(i + round) % kMessages];
      offset_[i] = offset;
      offset += room_[i] + kGuard;
      // In two pieces, so that a wrong receive is also one of wrong borders.
      const std::uint64_t first = room_[i] / 3;
      receives.push_back(receive(i, SliceList{slice(to_, offset_[i], first),
                                              slice(to_, offset_[i] + first, room_[i] - first)}));
    }
    expect_posted(pair_.b.post_receive(pair_.qb, receives));
    received_ = 0;
  }
  void post_sends() {
    std::vector<Request> sends;
    // Each begins at another byte of the source: no two look alike.
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      sends.push_back(send(i, slice(from_, i, length_[i])));
    }
    expect_posted(pair_.a.post_send(pair_.qa, sends));
  }
  void receive_some(std::uint32_t count) {
    for (const ibv_wc& wc : pair_.b.poll_receives(pair_.qb, count)) {
      expect_receive(wc, received_, length_[received_], pair_.qb);
      ++received_;
    }
  }
  void receive_rest() { receive_some(kMessages - received_); }
  void sends_complete(std::int32_t wait_ms = kDefaultWaitMs) {
    const auto done = pair_.a.poll_sends(pair_.qa, kMessages, wait_ms);
    for (std::uint32_t i = 0; i < kMessages; ++i) expect_wc(done[i], i, IBV_WC_SEND, pair_.qa);
  }
  void expect_each_in_its_place() {
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      SCOPED_TRACE(::testing::Message() << "message " << i << " of " << length_[i] << " bytes");
      const auto sent = pair_.a.peek(from_, i, length_[i]);
      const auto got = pair_.b.peek(to_, offset_[i], length_[i]);
      // As vectors, which compare their bytes at once: what an instrumented loop does is slow.
      ASSERT_TRUE(sent == got) << "from byte "
                               << std::mismatch(sent.begin(), sent.end(), got.begin()).first -
                                      sent.begin();
      expect_untouched(pair_.b, to_, offset_[i] + length_[i],
                       std::min(room_[i] - length_[i], kGuard) + kGuard, kUnwritten);
    }
  }

 private:
  Pair pair_;
  RegionInfo from_;
  RegionInfo to_;
  std::uint64_t length_[kMessages] = {};
  std::uint64_t room_[kMessages] = {};
  std::uint64_t offset_[kMessages] = {};
  std::uint32_t received_ = 0;
};

TEST_P(RcStream, EachMessageEndsInItsReceiveWhetherOrNotItsReceiverPolls) {
  Stage stage(GetParam());
  for (std::uint32_t round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    stage.post_receives(round);
    stage.post_sends();
    auto sender = std::async(std::launch::async, [&] { stage.sends_complete(); });
    // It polls for all of them, for none, or for some, and then not until all have been sent.
    const std::uint32_t first = round % 3 == 0 ? kMessages : round % 3 == 1 ? 0 : 1 + round % 5;
    if (first != 0) stage.receive_some(first);
    sender.get();
    stage.receive_rest();
    stage.expect_each_in_its_place();
    if (::testing::Test::HasFailure()) return;
  }
}

/// Then nobody on the other side takes anything, and its service thread neither. Where the kernel
/// copies into a stopped process the messages arrive all the same.
TEST_P(RcStreamOfProcesses, EachMessageEndsInItsReceiveAlsoWhenTheReceiverIsStopped) {
  Stage stage(GetParam());
  for (std::uint32_t round = 0; round < 8; ++round) {
    SCOPED_TRACE(round);
    stage.post_receives(round);
    // It stops before the first message, or in the midst of them.
    const std::uint32_t first = round % 4;
    if (first != 0) stage.post_sends();
    if (first != 0) stage.receive_some(first);
    stage.b().child().signal(SIGSTOP);
    ASSERT_TRUE(wait_until([&] { return stage.b().child().is_stopped(); }));
    if (first == 0) stage.post_sends();
    auto sender = std::async(std::launch::async, [&] { stage.sends_complete(); });
    // Where they need its service thread after all, they wait for it.
    (void)sender.wait_for(std::chrono::milliseconds(100));
    stage.b().child().signal(SIGCONT);
    stage.receive_rest();
    sender.get();
    stage.expect_each_in_its_place();
    if (::testing::Test::HasFailure()) return;
  }
}

TEST_P(RcStream, NoEventTellsOfAMessageBeforeItIsWhole) {
  // Programs that poll once for each event would take an early one for a message, as perftest does.
  constexpr std::uint32_t kRounds = 20;
  PairWish wish;
  wish.b.with_channel = 1;
  Pair pair(GetParam(), wish);
  const RegionInfo from = pair.a.allocate(GetParam().memory, 2_MiB);
  const RegionInfo to = pair.b.allocate(GetParam().memory, 2_MiB);
  const std::int32_t cq = pair.qb.receive_cq;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    expect_posted(pair.b.post_receive(pair.qb, receive(round, slice(to, 0, 2_MiB))));
    ASSERT_EQ(pair.b.call<&Endpoint::arm>(cq, 0), 0);
    auto polled = std::async(std::launch::async, [&] {
      EXPECT_EQ(pair.b.call<&Endpoint::take_event>(cq, kDefaultWaitMs), cq);
      return pair.b.call<&Endpoint::poll_once>(cq, 1u);
    });
    expect_posted(pair.a.post_send(pair.qa, send(round, slice(from, 0, 2_MiB))));
    pair.a.poll_sends(pair.qa, 1);
    const std::vector<ibv_wc> found = polled.get();
    ASSERT_EQ(found.size(), 1u) << "round " << round;
    expect_receive(found[0], round, 2_MiB, pair.qb);
  }
}

}  // namespace
}  // namespace verbatim::harness
