// SPDX-License-Identifier: BSD-2-Clause
//
// A stranger that asks to connect to UD queue pairs with more endpoints than anybody needs, or
// under ever new numbers. It gets its share, and an honest one is accepted all the same.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/stranger.hpp"
#include "tests/hostile/acquaintance.hpp"
#include "tests/hostile/datagram_end.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/pair.hpp"

namespace verbatim::hostile {
namespace {

using namespace verbatim::shm;
using fuzz::Stranger;
using harness::wait_until;

constexpr std::uint32_t kAskingBlock = 0xe00;  ///< the stranger's first, which has no name
constexpr std::uint32_t kShare = 12288;        ///< of a process that is the only one
constexpr std::uint32_t kOwn = 16;             ///< more than the victim has queue pairs of its own
constexpr std::uint32_t kBlocks = kMaxBlocksPerProcess, kAllQps = kBlocks * kQpnsPerBlock;
constexpr std::uint64_t kQpsAt = Stranger::kBytes;
constexpr std::uint64_t kStrangersBytes = kQpsAt + kAllQps * sizeof(QpRecord);

constexpr const char* kRefusal = "as many ways as it may have";
/// How often it was said in the test that runs.
std::ptrdiff_t times_refused() {
  const auto said = harness::LogWatch::instance()->complaints();
  return std::count_if(said.begin(), said.end(), [](const std::string& line) {
    return line.find(kRefusal) != std::string::npos;
  });
}

class AskingToConnect : public ::testing::Test {
 protected:
  void SetUp() override {
    ibv_ah_attr path{};
    path.port_num = 1;
    path.dlid = session_.port.lid;
    ah_.reset(ibv_create_ah(session_.pd.get(), &path));
    stranger_.head().qp_table = kQpsAt;
    stranger_.head().qp_capacity = kAllQps;
    claim_blocks(kAskingBlock);
    known_.make(stranger_, receiver_.qpn());
  }
  void TearDown() override { times_refused_before_ += times_refused(); }

  void claim_blocks(std::uint32_t first) {
    for (std::uint32_t k = 0; k < kBlocks; ++k) stranger_.head().blocks[k].store(first + k);
    stranger_.head().block_count.store(kBlocks);
    first_block_ = first;
  }
  std::uint32_t number(std::uint32_t place) const {
    return (first_block_ << kQpnBlockBits) + place;
  }
  /// With the endpoints at the places below `count`, under the numbers that they have now, at all
  /// receivers in turn.
  void ask_to_connect(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      QpRecord& endpoint = stranger_.at<QpRecord>(kQpsAt)[i];
      endpoint.qpn = number(i);
      endpoint.dest_qpn = receiver_of(i).qpn();
      endpoint.speaks_for = number(0);
      endpoint.type = IBV_QPT_UD;
      endpoint.endpoint_link = i;
    }
    stranger_.head().endpoint_link.store(count);
    ring();
  }
  void ring() {
    for (std::uint32_t k = 0; k <= others_.size(); ++k) known_.ring(receiver_of(k).qpn());
    known_.wake();
  }
  /// The first one and the others, round and round.
  const DatagramEnd& receiver_of(std::uint32_t endpoint) const {
    const std::size_t k = endpoint % (others_.size() + 1);
    return k == 0 ? receiver_ : *others_[k - 1];
  }
  /// Calls `look` for each endpoint that leads to a receiver. How many there are.
  template <class Look>
  std::uint32_t each_endpoint(Look look) const {
    std::uint32_t count = 0;
    const VictimView& view = known_.view();
    for (std::uint32_t k = 0; k <= others_.size(); ++k) {
      for (std::uint32_t link = known_.record_of(receiver_of(k).qpn()).endpoint_link;
           link != 0 && count < 2 * kAllQps; ++count) {
        look(*view.record(link - 1));
        link = view.record(link - 1)->endpoint_link;
      }
    }
    return count;
  }
  std::uint32_t endpoints() const {
    return each_endpoint([](const QpRecord&) {});
  }
  bool is_accepted(std::uint32_t qpn) const {
    bool found = false;
    each_endpoint([&](const QpRecord& endpoint) {
      found |= endpoint.dest_qpn == qpn && endpoint.accepts != 0;
    });
    return found;
  }
  /// Somebody who was not here before: whoever asked to connect earlier has been looked at when
  /// this returns.
  void expect_newcomer_is_heard() {
    DatagramEnd newcomer(session_);
    newcomer.send(ah_.get(), receiver_.qpn(), 8);
    EXPECT_EQ(receiver_.next().src_qp, newcomer.qpn());
  }

  static inline std::ptrdiff_t times_refused_before_ = 0;  ///< by this process
  harness::Session session_;
  DatagramEnd receiver_{session_};
  std::vector<std::unique_ptr<DatagramEnd>> others_;  ///< receivers, of the same process
  harness::AhHandle ah_;
  Stranger stranger_{0x5eed3, kAskingBlock, kStrangersBytes};
  Acquaintance known_;
  std::uint32_t first_block_ = kAskingBlock;
};

TEST_F(AskingToConnect, WithAllItsNumbersIsHeardWithAShareOfThemAndOthersAreHeard) {
  harness::AllowedLog refusal(kRefusal);
  ask_to_connect(kAllQps);
  EXPECT_TRUE(wait_until([&] { return endpoints() >= kShare - kOwn; }));
  expect_newcomer_is_heard();
  EXPECT_LE(endpoints(), kShare + 1);
  ask_to_connect(kAllQps);
  expect_newcomer_is_heard();
  EXPECT_LE(endpoints(), kShare + 2);
  EXPECT_EQ(times_refused_before_ + times_refused(), 1) << "it is said, and once";
}

TEST_F(AskingToConnect, ToAllQueuePairsOfAProcessLeavesItNumbersAndOthersAreHeard) {
  harness::AllowedLog refusal(kRefusal);
  while (others_.size() < 7) others_.push_back(std::make_unique<DatagramEnd>(session_));
  ask_to_connect(kAllQps);
  EXPECT_TRUE(wait_until([&] {
    ring();
    return endpoints() >= kShare - kOwn;
  }));
  expect_newcomer_is_heard();
  EXPECT_LE(endpoints(), kShare + 1);
  const harness::CqHandle cq(ibv_create_cq(session_.context.get(), 4, nullptr, nullptr, 0));
  std::vector<harness::QpHandle> made;
  for (std::uint32_t i = 0; i < kQpnsPerBlock; ++i) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq.get();
    init.qp_type = IBV_QPT_RC;
    made.emplace_back(ibv_create_qp(session_.pd.get(), &init));
    ASSERT_NE(made.back(), nullptr) << i;
  }
}

TEST_F(AskingToConnect, WithAllItsNumbersKeepsNobodyWaitingWhoMakesQueuePairsMeanwhile) {
  harness::AllowedLog refusal(kRefusal);
  const harness::CqHandle cq(ibv_create_cq(session_.context.get(), 4, nullptr, nullptr, 0));
  const auto is_through = [&] { return endpoints() >= kShare - kOwn; };
  std::uint32_t made = 0;
  ask_to_connect(kAllQps);
  EXPECT_TRUE(wait_until([&] {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq.get();
    init.qp_type = IBV_QPT_RC;
    EXPECT_NE(harness::QpHandle(ibv_create_qp(session_.pd.get(), &init)), nullptr);
    if (is_through()) return true;
    ++made;
    return false;
  }));
  EXPECT_GE(made, 3u) << "before all its endpoints were there";
}

TEST_F(AskingToConnect, ClaimsTheNumbersOfAnotherWhoIsHeardAllTheSame) {
  harness::PairWish wish;
  wish.a.type = wish.b.type = IBV_QPT_UD;
  harness::Pair pair({harness::Placement::kTwoProcesses, harness::MemoryKind::kMapped}, wish);
  claim_blocks(pair.qb.qpn >> kQpnBlockBits);
  ask_to_connect(1);
  expect_newcomer_is_heard();
  const harness::RegionInfo from = pair.b.allocate(harness::MemoryKind::kMapped, 64);
  const std::int32_t ah = pair.b.call<&harness::Endpoint::create_ah>(pair.qa, 0);
  pair.b.post_send(pair.qb,
                   harness::datagram(1, harness::slice(from, 0, 8), ah, receiver_.qpn(), kQkey));
  EXPECT_EQ(receiver_.next().src_qp, pair.qb.qpn);
}

TEST_F(AskingToConnect, UnderEverNewNumbersKeepsThoseOnlyThatItHas) {
  constexpr std::uint32_t kEndpoints = 16;
  for (std::uint32_t round = 0; round < 40; ++round) {
    claim_blocks(kAskingBlock + 3 * round);
    ask_to_connect(kEndpoints);
    ASSERT_TRUE(wait_until([&] { return is_accepted(number(0)); })) << round;
    ASSERT_LE(endpoints(), 2 * kEndpoints) << round;
  }
  expect_newcomer_is_heard();
}

}  // namespace
}  // namespace verbatim::hostile
