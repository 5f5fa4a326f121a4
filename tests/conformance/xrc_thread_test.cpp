// SPDX-License-Identifier: BSD-2-Clause
//
// Threads on one XRC connection and on the shared receive queues that it reaches, without a lock of
// the application's (IBTA annex A14; man ibv_alloc_td, ibv_create_srq_ex): each message has one
// receive of the queue that it names, and each receive one message.
#include "tests/conformance/crew.hpp"
#include "tests/support/two_sides.hpp"

namespace verbatim::harness {
namespace {

constexpr std::uint32_t kQueues = 2;
constexpr std::uint32_t kSlots = 32;  ///< of each queue
constexpr std::uint64_t kSlot = 64;

class XrcThreads : public BetweenTwo {};
RUN_OVER_SETTINGS(XrcThreads, on_every_device(within_a_process()));

TEST_P(XrcThreads, ManySendOverOneConnectionIntoQueuesThatManyFeedAndPoll) {
  SKIP_IF(lacks_type(device(), IBV_QPT_XRC_RECV));
  PairWish unconnected;
  unconnected.connected = false;
  Pair pair(GetParam(), unconnected);
  Endpoint& a = pair.a.here();
  Endpoint& b = pair.b.here();
  QpWish wish;
  wish.type = IBV_QPT_XRC_SEND;
  wish.send_depth = 64;
  const QpInfo sender = pair.a.create_qp(wish);
  wish.type = IBV_QPT_XRC_RECV;
  const QpInfo target = pair.b.create_qp(wish);
  Link soon;
  soon.min_rnr_timer = 1;
  pair.a.connect(sender, target);
  pair.b.connect(target, sender, soon);
  SrqWish shared;
  shared.xrc = 1;
  shared.depth = kSlots;
  SrqInfo queues[kQueues];
  for (SrqInfo& queue : queues) queue = pair.b.create_srq(shared);
  const std::uint32_t count = kPosters * kEach;
  const RegionInfo from = pair.a.allocate(memory(), count * 8);
  const RegionInfo to = pair.b.allocate(memory(), kQueues * kSlots * kSlot);
  const RegionInfo counter = pair.b.allocate(memory(), 8);
  const auto address = [](std::uint32_t queue, std::uint64_t place) {
    return (queue * kSlots + place) * kSlot;
  };
  FreeSlots places[kQueues] = {FreeSlots(kSlots), FreeSlots(kSlots)};
  Tally sent(count), arrived(count);
  PatientPoster poster(sent);
  const std::uint32_t messages = kPosters * (kEach - (kEach + 3) / 4);
  const auto all_arrived = [&] { return arrived.total() >= messages; };
  {
    Crew crew;
    for (std::uint32_t p = 0; p < kPosters; ++p) {
      crew.add([&, p] {
        for (std::uint32_t i = 0; i < kEach; ++i) {
          const std::uint64_t id = p * kEach + i;
          const Slice piece = slice(from, id * 8, 8);
          a.store(from.id, id * 8, id);
          // Each fourth is an atomic, which takes no receive.
          Request request = i % 4 == 0 ? fetch_add(id, piece, counter, 0, 1) : send(id, piece);
          request.remote_srqn = queues[(p + i) % kQueues].srqn;
          poster.post(a, sender.id, request);
        }
      });
    }
    for (std::uint32_t p = 0; p < kPollers; ++p)
      crew.add([&] { poll_until_complete(a, sender.send_cq, sent); });
    for (std::uint32_t p = 0; p < 2 * kQueues; ++p) {
      const std::uint32_t q = p % kQueues;
      crew.add([&, q] {
        ASSERT_TRUE(wait_until([&] {
          if (const auto place = places[q].take()) {
            const Receive next = receive(*place, slice(to, address(q, *place), kSlot));
            EXPECT_EQ(b.post_srq_receive(queues[q].id, {next}).error, 0);
          }
          return all_arrived();
        }));
      });
      crew.add([&, q] {
        ASSERT_TRUE(wait_until([&] {
          for (ibv_wc wc : b.poll_once(queues[q].cq, 3)) {
            const std::uint64_t place = wc.wr_id;
            wc.wr_id = b.load(to.id, address(q, place));
            EXPECT_EQ(wc.byte_len, 8u);
            EXPECT_EQ(wc.qp_num, target.qpn);
            EXPECT_EQ((wc.wr_id / kEach + wc.wr_id % kEach) % kQueues, q) << "the one it named";
            b.store(to.id, address(q, place), ~std::uint64_t{0});
            places[q].give(place);
            arrived.count(wc);
          }
          return all_arrived();
        }));
      });
    }
  }
  sent.expect_each_once();
  arrived.expect_none_twice();
  EXPECT_EQ(arrived.total(), messages);
  EXPECT_EQ(pair.b.load(counter, 0), count - messages);
}

}  // namespace
}  // namespace verbatim::harness
