// SPDX-License-Identifier: BSD-2-Clause
//
// Threads on one unreliable connection and on its completion queues, without a lock of the
// application's (man ibv_alloc_td). A message may be lost on its way, never doubled; over shm,
// where a receive waits for each, none is lost (providers/shm/design/sending.md).
#include <atomic>

#include "tests/conformance/unreliable_threads.hpp"

namespace verbatim::harness {
namespace {

class UcThreads : public UnreliableThreads {};
RUN_OVER_SETTINGS(UcThreads, on_every_device(within_a_process()));

TEST_P(UcThreads, ManySendAndWriteOnOneConnectionAndManyPollEitherQueue) {
  SKIP_IF(lacks_type(device(), IBV_QPT_UC));
  Pair pair(GetParam(), wish(IBV_QPT_UC));
  Endpoint& a = pair.a.here();
  Endpoint& b = pair.b.here();
  const RegionInfo from = pair.a.allocate(memory(), (count_ + 1) * 8);
  const RegionInfo to = pair.b.allocate(memory(), (count_ + kRepeats) * 8);
  const RegionInfo written = pair.b.allocate(memory(), kPosters * 8);
  for (std::uint32_t i = 0; i < count_ + kRepeats; ++i)
    expect_posted(pair.b.post_receive(pair.qb, receive(i, slice(to, i * 8, 8))));
  // Each message is sent behind a write of its thread, which has the same word.
  const auto word = [&](std::uint64_t id) {
    a.store(from.id, id * 8, id);
    return slice(from, id * 8, 8);
  };
  Tally sent(2 * count_), arrived(count_), receives(count_ + kRepeats);
  PatientPoster poster(sent);
  std::atomic<bool> ended{false};
  const auto take_arrived = [&] {
    for (ibv_wc wc : b.poll_once(pair.qb.receive_cq, 3)) {
      EXPECT_EQ(wc.byte_len, 8u);
      EXPECT_EQ(wc.qp_num, pair.qb.qpn);
      receives.count(wc);
      wc.wr_id = b.load(to.id, wc.wr_id * 8);
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
        for (std::uint32_t i = 0; i < each_; ++i) {
          const std::uint64_t id = p * each_ + i;
          const Slice piece = word(id);
          const Request before = write(count_ + id, piece, written, p * 8);
          poster.post(a, pair.qa.id, i % 2 == 0 ? before : before.with(IBV_SEND_INLINE));
          poster.post(a, pair.qa.id, send(id, piece));
        }
      });
    }
    for (std::uint32_t p = 0; p < kPollers; ++p)
      crew.add([&] { poll_until_complete(a, pair.qa.send_cq, sent); });
  }
  send_last(pair, send(count_, word(count_)), ended);
  takers.join();
  take_arrived();
  sent.expect_each_once();
  receives.expect_none_twice();
  arrived.expect_none_twice();
  if (!loses_none()) return;
  arrived.expect_each_once();
  // Each thread's own writes stayed in order: its last one stays.
  for (std::uint32_t p = 0; p < kPosters; ++p)
    EXPECT_EQ(pair.b.load(written, p * 8), (p + 1) * each_ - 1);
}

}  // namespace
}  // namespace verbatim::harness
