// SPDX-License-Identifier: BSD-2-Clause
//
// Threads that post receives to one shared queue while queue pairs take them (man ibv_create_srq,
// ibv_alloc_td): each receive is one message's, each message has one.
#include "tests/conformance/crew.hpp"
#include "tests/support/two_sides.hpp"

namespace verbatim::harness {
namespace {

constexpr std::uint32_t kConnections = 2;
constexpr std::uint32_t kSlots = 48;
constexpr std::uint64_t kThreadSlot = 64;

class SrqThreads : public BetweenTwo {};
RUN_OVER_SETTINGS(SrqThreads, on_every_device(within_a_process()));

TEST_P(SrqThreads, ManyPostWhatTwoQueuePairsTake) {
  SKIP_IF(lacks_srq(device()));
  PairWish unconnected;
  unconnected.connected = false;
  Pair pair(GetParam(), unconnected);
  Endpoint& a = pair.a.here();
  Endpoint& b = pair.b.here();
  const std::uint32_t count = kConnections * kEach;
  SrqWish shared;
  shared.depth = kSlots;
  const SrqInfo srq = pair.b.create_srq(shared);
  const RegionInfo from = pair.a.allocate(memory(), count * 8);
  const RegionInfo to = pair.b.allocate(memory(), kSlots * kThreadSlot);
  QpWish sends, receives;
  sends.send_cq = a.create_cq(512, 0);
  receives.receive_cq = b.create_cq(512, 0);
  receives.srq = srq.id;
  receives.receive_depth = 0;
  std::vector<QpInfo> senders, receivers;
  Link soon;
  soon.min_rnr_timer = 1;
  for (std::uint32_t i = 0; i < kConnections; ++i) {
    senders.push_back(pair.a.create_qp(sends));
    receivers.push_back(pair.b.create_qp(receives));
    pair.a.connect(senders[i], receivers[i]);
    pair.b.connect(receivers[i], senders[i], soon);
  }
  FreeSlots slots(kSlots);
  Tally sent(count), arrived(count);
  PatientPoster poster(sent);
  {
    Crew crew;
    for (std::uint32_t c = 0; c < kConnections; ++c) {
      crew.add([&, c] {
        for (std::uint32_t i = 0; i < kEach; ++i) {
          const std::uint64_t id = c * kEach + i;
          a.store(from.id, id * 8, id);
          poster.post(a, senders[c].id, send(id, slice(from, id * 8, 8)));
        }
      });
    }
    crew.add([&] { poll_until_complete(a, sends.send_cq, sent); });
    for (std::uint32_t p = 0; p < kPosters; ++p) {
      crew.add([&] {
        ASSERT_TRUE(wait_until([&] {
          if (const auto slot = slots.take()) {
            const Receive next = receive(*slot, slice(to, *slot * kThreadSlot, kThreadSlot));
            EXPECT_EQ(b.post_srq_receive(srq.id, {next}).error, 0);
          }
          return arrived.complete();
        }));
      });
    }
    for (std::uint32_t p = 0; p < kPollers; ++p) {
      crew.add([&] {
        ASSERT_TRUE(wait_until([&] {
          for (ibv_wc wc : b.poll_once(receives.receive_cq, 3)) {
            const std::uint64_t slot = wc.wr_id;
            wc.wr_id = b.load(to.id, slot * kThreadSlot);
            EXPECT_EQ(wc.byte_len, 8u);
            EXPECT_EQ(wc.qp_num, receivers[wc.wr_id / kEach % kConnections].qpn);
            b.store(to.id, slot * kThreadSlot, ~std::uint64_t{0});
            slots.give(slot);
            arrived.count(wc);
          }
          return arrived.complete();
        }));
      });
    }
  }
  sent.expect_each_once();
  arrived.expect_each_once();
}

}  // namespace
}  // namespace verbatim::harness
