// SPDX-License-Identifier: BSD-2-Clause
//
// Messages that lie whole in the sender's ring of lines: of every length they come in order and as
// they were, around the ring's end and from one ring to the next larger one, whether they are taken
// at once or when all have been sent.
#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

#include "tests/support/expect.hpp"

namespace verbatim::harness::message_lines {
namespace {

constexpr std::array<std::uint32_t, 20> kLengths{8,   56,  57,   64,   112,  113, 128,
                                                 191, 192, 256,  320,  496,  511, 512,
                                                 700, 0,   1008, 1009, 1024, 1025};
constexpr std::uint32_t kHeader = 40;
constexpr std::uint32_t kRoom = 1100;
constexpr std::uint32_t kReceives = 256;

/// Whose receives they use up.
enum class Way : std::uint8_t { kOwn, kShared, kDatagrams };

class Stage {
 public:
  Stage(Setting setting, Way way) : way_(way), pair_(setting, wish(way)) {
    from_ = pair_.a.allocate(setting.memory, 4096);
    to_ = pair_.b.allocate(setting.memory, std::uint64_t{kReceives} * kRoom);
    pair_.a.fill(from_, 0, 4096, 1);
    source_ = pair_.a.peek(from_, 0, 4096);
    qa_ = pair_.qa;
    qb_ = pair_.qb;
    if (way == Way::kDatagrams) ah_ = pair_.a.call<&Endpoint::create_ah>(pair_.qb, 0);
    if (way != Way::kShared) return;
    SrqWish shared;
    shared.depth = kReceives;
    srq_ = pair_.b.create_srq(shared);
    QpWish sharing = wish(way).a;
    sharing.srq = srq_.id;
    std::tie(qa_, qb_) = pair_.add_qps(wish(way).a, sharing);
  }
  void post_receives(std::uint32_t count) {
    std::vector<Receive> receives;
    for (std::uint32_t i = 0; i < count; ++i, ++posted_)
      receives.push_back(receive(posted_, slice(to_, posted_ % kReceives * kRoom, kRoom)));
    expect_posted(way_ == Way::kShared ? pair_.b.post_srq_receive(srq_, receives)
                                       : pair_.b.post_receive(qb_, receives));
  }
  /// One by one, or as one list.
  void send_some(std::uint32_t count, bool as_list) {
    std::vector<Request> requests;
    for (std::uint32_t i = 0; i < count; ++i, ++sent_) {
      const SliceList bytes = slice(from_, sent_ % 64, length(sent_));
      requests.push_back(way_ == Way::kDatagrams
                             ? datagram(sent_, bytes, ah_, qb_.qpn, harness::Link{}.qkey)
                             : send(sent_, bytes));
    }
    if (as_list) {
      expect_posted(pair_.a.post_send(qa_, requests));
    } else {
      for (const Request& request : requests) expect_posted(pair_.a.post_send(qa_, request));
    }
    for (const ibv_wc& wc : pair_.a.poll_sends(qa_, count))
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
  }
  void take_some(std::uint32_t count) {
    const std::uint32_t head = way_ == Way::kDatagrams ? kHeader : 0;
    for (const ibv_wc& wc : pair_.b.poll_receives(qb_, count)) {
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
      ASSERT_EQ(wc.wr_id, taken_);
      ASSERT_EQ(wc.byte_len, length(taken_) + head) << taken_;
      const auto got = pair_.b.peek(to_, taken_ % kReceives * kRoom + head, length(taken_));
      ASSERT_TRUE(std::equal(got.begin(), got.end(), source_.begin() + taken_ % 64)) << taken_;
      ++taken_;
    }
  }

 private:
  static PairWish wish(Way way) {
    PairWish wish;
    wish.a.type = way == Way::kDatagrams ? IBV_QPT_UD : IBV_QPT_RC;
    wish.a.send_depth = wish.a.receive_depth = kReceives;
    wish.a.cq_depth = 2 * kReceives;
    wish.b = wish.a;
    return wish;
  }
  static std::uint32_t length(std::uint64_t message) {
    return kLengths[message * 7 % kLengths.size()];
  }

  Way way_;
  Pair pair_;
  RegionInfo from_, to_;
  std::vector<std::uint8_t> source_;
  QpInfo qa_, qb_;
  SrqInfo srq_;
  std::int32_t ah_ = -1;
  std::uint64_t posted_ = 0, sent_ = 0, taken_ = 0;
};

class MessageLines : public ::testing::TestWithParam<Setting> {};
RUN_OVER_SETTINGS(MessageLines, each_way());

void play(Stage& stage) {
  // The receiver sleeps until all are there, in ever longer trains; then it takes turns.
  for (const std::uint32_t train : {1u, 3u, 20u, 64u, kReceives}) {
    for (std::uint32_t i = 0; i < 3; ++i) {
      stage.post_receives(train);
      stage.send_some(train, i % 2 != 0);
      stage.take_some(train);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  for (std::uint32_t i = 0; i < 80; ++i) {
    stage.post_receives(5);
    stage.send_some(5, i % 2 != 0);
    stage.take_some(5);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST_P(MessageLines, ToReceivesOfTheirOwnComeInOrder) {
  Stage stage(GetParam(), Way::kOwn);
  play(stage);
}

TEST_P(MessageLines, ToSharedReceivesComeInOrder) {
  Stage stage(GetParam(), Way::kShared);
  play(stage);
}

TEST_P(MessageLines, OfDatagramsComeInOrder) {
  Stage stage(GetParam(), Way::kDatagrams);
  play(stage);
}

/// By how many messages, of a line each, are sent while nobody polls.
class MessageLinesUntold : public ::testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Lines, MessageLinesUntold,
                         ::testing::Values(95u, 96u, 125u, 126u, 127u, 128u, 191u, 222u, 223u,
                                           254u));

/// A doorbell names the last line by seven bits; and more of them lie in rings that grow. Within a
/// process nobody looks again for what a doorbell has not said.
TEST_P(MessageLinesUntold, AreAllTakenWhenOneIsAskedFor) {
  PairWish wish;
  wish.a.send_depth = wish.b.receive_depth = kReceives;
  wish.a.cq_depth = wish.b.cq_depth = 2 * kReceives;
  Pair pair(kHere, wish);
  const RegionInfo from = pair.a.allocate(MemoryKind::kMapped, 64);
  const RegionInfo to = pair.b.allocate(MemoryKind::kMapped, 64);
  const auto exchange = [&](std::uint32_t count) {
    std::vector<Receive> receives;
    for (std::uint32_t i = 0; i < count; ++i) receives.push_back(receive(i, slice(to, 0, 64)));
    expect_posted(pair.b.post_receive(pair.qb, receives));
    for (std::uint32_t i = 0; i < count; ++i)
      expect_posted(pair.a.post_send(pair.qa, {send(i, slice(from, 0, 8))}));
    std::uint64_t taken = 0;
    for (const ibv_wc& wc : pair.b.poll_receives(pair.qb, count)) EXPECT_EQ(wc.wr_id, taken++);
    EXPECT_EQ(taken, count);
    pair.a.poll_sends(pair.qa, count);
  };
  exchange(1);
  exchange(GetParam());
}

}  // namespace
}  // namespace verbatim::harness::message_lines
