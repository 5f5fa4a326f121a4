// SPDX-License-Identifier: BSD-2-Clause
//
// What thousands of connections between two processes cost, and what ends their number: said on
// standard output, and held to what providers/shm/design/memory.md promises.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "tests/support/expect.hpp"
#include "tests/support/held_memory.hpp"

namespace verbatim::harness {
namespace {

HeldMemory held(Side& side) { return held_by(side.is_child() ? side.child().pid() : ::getpid()); }

/// What each of `count` connections has added at one end.
HeldMemory each(const HeldMemory& before, const HeldMemory& after, std::size_t count) {
  const auto n = static_cast<std::int64_t>(count);
  return {(after.shared - before.shared) / n, (after.own - before.own) / n};
}

void say(std::size_t count, const char* what, const HeldMemory& sender,
         const HeldMemory& receiver) {
  std::printf(
      "%zu connections, %s: each %lld B shared and %lld B of its own at the sender, %lld B and "
      "%lld B at the receiver\n",
      count, what, static_cast<long long>(sender.shared), static_cast<long long>(sender.own),
      static_cast<long long>(receiver.shared), static_cast<long long>(receiver.own));
}

class CrowdMemory : public ::testing::Test {
 protected:
  static constexpr std::size_t kBatch = 500;
  static constexpr std::uint32_t kDepth = 128;
  static constexpr std::int32_t kCqDepth = 2 * kBatch;

  CrowdMemory() {
    wish_a_.send_depth = wish_a_.receive_depth = kDepth;
    wish_a_.max_sge = 1;
    wish_b_ = wish_a_;
    wish_a_.send_cq = wish_a_.receive_cq = sender_.call<&Endpoint::create_cq>(kCqDepth, 0);
    wish_b_.send_cq = wish_b_.receive_cq = receiver_.call<&Endpoint::create_cq>(kCqDepth, 0);
  }
  /// One more connection. The errno of the verb that was refused.
  int add() {
    try {
      qps_.emplace_back(sender_.create_qp(wish_a_), receiver_.create_qp(wish_b_));
    } catch (const std::exception&) {
      return ENOMEM;
    }
    const auto& [from, to] = qps_.back();
    receiver_.connect(to, from);
    int error = sender_.call<&Endpoint::to_init>(from.id, Link{});
    if (error == 0) error = sender_.call<&Endpoint::to_rtr>(from.id, to, Link{});
    if (error == 0) error = sender_.call<&Endpoint::to_rts>(from.id, Link{});
    if (error != 0) qps_.pop_back();
    return error;
  }
  /// A message over each of the first `count`, received before the next ones are sent.
  void send_on_each(std::size_t count, std::int32_t srq = -1) {
    for (std::size_t first = 0; first < count; first += kBatch) {
      for (std::size_t i = first; i < first + kBatch; ++i) {
        if (srq >= 0) {
          const std::vector<Receive> one{receive(i)};
          ASSERT_EQ(receiver_.call<&Endpoint::post_srq_receive>(srq, one).error, 0);
        } else {
          expect_posted(receiver_.post_receive(qps_[i].second, {receive(i)}));
        }
        expect_posted(sender_.post_send(qps_[i].first, send(i, SliceList{})));
      }
      for (Side* const side : {&sender_, &receiver_}) {
        const std::int32_t cq = side == &sender_ ? wish_a_.send_cq : wish_b_.receive_cq;
        for (const ibv_wc& wc :
             side->call<&Endpoint::poll>(cq, std::uint32_t{kBatch}, kDefaultWaitMs))
          ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
      }
    }
  }
  HeldMemory sent() { return held(sender_); }
  HeldMemory received() { return held(receiver_); }

  Side sender_{kAnotherProcess};
  Side receiver_{kAnotherProcess};
  QpWish wish_a_, wish_b_;
  std::vector<std::pair<QpInfo, QpInfo>> qps_;
};

TEST_F(CrowdMemory, OfTenThousandConnectionsWithReceivesOfTheirOwn) {
  constexpr std::size_t kCount = 10'000;
  ASSERT_EQ(add(), 0);
  const HeldMemory before_a = sent(), before_b = received();
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(add(), 0) << qps_.size();
  const HeldMemory idle_a = each(before_a, sent(), kCount),
                   idle_b = each(before_b, received(), kCount);
  say(kCount, "idle, queues of 128", idle_a, idle_b);
  send_on_each(kCount);
  const HeldMemory used_a = each(before_a, sent(), kCount),
                   used_b = each(before_b, received(), kCount);
  say(kCount, "used and drained", used_a, used_b);
  EXPECT_LE(idle_a.shared + idle_a.own, 4096);
  EXPECT_LE(idle_b.shared + idle_b.own, 4096);
  EXPECT_LE(used_a.shared + used_a.own, 12288);
  EXPECT_LE(used_b.shared + used_b.own, 12288);
}

TEST_F(CrowdMemory, OfTenThousandConnectionsThatShareAQueueOf32768) {
  constexpr std::size_t kCount = 10'000;
  SrqWish wish;
  wish.depth = 32768;
  wish.max_sge = 1;
  const SrqInfo srq = receiver_.call<&Endpoint::create_srq>(wish);
  wish_b_.srq = srq.id;
  ASSERT_EQ(add(), 0);
  const HeldMemory before_a = sent(), before_b = received();
  for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(add(), 0) << qps_.size();
  const HeldMemory idle_a = each(before_a, sent(), kCount),
                   idle_b = each(before_b, received(), kCount);
  say(kCount, "idle, a shared queue of 32768", idle_a, idle_b);
  EXPECT_LE(idle_a.shared + idle_a.own, 4096);
  EXPECT_LE(idle_b.shared + idle_b.own, 6144) << "with room to hold four shared receives";
  send_on_each(kCount, srq.id);
  const HeldMemory used_a = each(before_a, sent(), kCount),
                   used_b = each(before_b, received(), kCount);
  say(kCount, "used and drained", used_a, used_b);
  EXPECT_LE(used_a.shared + used_a.own, 12288);
  EXPECT_LE(used_b.shared + used_b.own, 12288);
}

}  // namespace
}  // namespace verbatim::harness
