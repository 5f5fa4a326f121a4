// SPDX-License-Identifier: BSD-2-Clause
//
// Threads on one queue pair of datagrams and on one completion queue, without a lock of the
// application's (man ibv_alloc_td). A datagram may be lost on its way, never doubled; over shm,
// where a receive waits for each, none is lost (providers/shm/design/ud.md).
#include <atomic>

#include "tests/conformance/unreliable_threads.hpp"

namespace verbatim::harness {
namespace {

constexpr std::uint64_t kGrh = 40;
constexpr std::uint64_t kDatagramSlot = kGrh + 8;

class UdThreads : public UnreliableThreads {};
RUN_OVER_SETTINGS(UdThreads, on_every_device(within_a_process()));

TEST_P(UdThreads, ManySendFromOneQueuePairToOneWhoseQueueManyPoll) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UD));
  Pair pair(GetParam(), wish(IBV_QPT_UD));
  Endpoint& a = pair.a.here();
  Endpoint& b = pair.b.here();
  const RegionInfo from = pair.a.allocate(memory(), (count_ + 1) * 8);
  const RegionInfo to = pair.b.allocate(memory(), (count_ + kRepeats) * kDatagramSlot);
  const std::int32_t ah = pair.a.call<&Endpoint::create_ah>(pair.qb, 0);
  for (std::uint32_t i = 0; i < count_ + kRepeats; ++i)
    expect_posted(
        pair.b.post_receive(pair.qb, receive(i, slice(to, i * kDatagramSlot, kDatagramSlot))));
  const auto letter = [&](std::uint64_t id) {
    a.store(from.id, id * 8, id);
    return datagram(id, slice(from, id * 8, 8), ah, pair.qb.qpn, kQkey);
  };
  Tally sent(count_), arrived(count_), receives(count_ + kRepeats);
  PatientPoster poster(sent);
  std::atomic<bool> ended{false};
  const auto take_arrived = [&] {
    for (ibv_wc wc : b.poll_once(pair.qb.receive_cq, 3)) {
      EXPECT_EQ(wc.byte_len, kDatagramSlot);
      EXPECT_EQ(wc.src_qp, pair.qa.qpn);
      receives.count(wc);
      wc.wr_id = b.load(to.id, wc.wr_id * kDatagramSlot + kGrh);
      if (wc.wr_id == count_)
        ended = true;
      else
        arrived.count(wc);
    }
  };
  Crew takers;
  for (std::uint32_t p = 0; p < kPollers; ++p) {
    takers.add([&] {
      EXPECT_TRUE(wait_until([&] {
        take_arrived();
        return ended.load();
      }));
    });
  }
  {
    Crew crew;
    for (std::uint32_t p = 0; p < kPosters; ++p) {
      crew.add([&, p] {
        for (std::uint32_t i = 0; i < each_; ++i) poster.post(a, pair.qa.id, letter(p * each_ + i));
      });
    }
    for (std::uint32_t p = 0; p < kPollers; ++p)
      crew.add([&] { poll_until_complete(a, pair.qa.send_cq, sent); });
  }
  send_last(pair, letter(count_), ended);
  takers.join();
  take_arrived();
  sent.expect_each_once();
  receives.expect_none_twice();
  arrived.expect_none_twice();
  if (loses_none()) arrived.expect_each_once();
}

}  // namespace
}  // namespace verbatim::harness
