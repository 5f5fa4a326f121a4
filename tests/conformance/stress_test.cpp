// SPDX-License-Identifier: BSD-2-Clause
//
// The same promises for very long: a million rounds of arming, sleeping and polling (IBTA 11.4.2.2;
// man ibv_req_notify_cq), in which a wakeup that is lost once would be seen.
#include <poll.h>

#include <atomic>
#include <thread>

#include "tests/conformance/device.hpp"
#include "tests/support/scale.hpp"

namespace verbatim::harness {
namespace {

class Long : public OnDevice {};
RUN_ON_EVERY_DEVICE(Long);

TEST_P(Long, NoWakeupIsLostInAMillionRounds) {
  const auto rounds = scaled_rounds<std::uint64_t>(1'000'000, 10'000);
  ibv_comp_channel* const told = channel();
  ibv_cq* const queue = cq(64, told);
  ibv_qp* const by = qp(IBV_QPT_RC, queue);
  ASSERT_EQ(lead(by, IBV_QPS_ERR), 0);
  // Up to so many are on their way, so that arming meets completions at every distance.
  constexpr std::uint64_t kAhead = 8;
  std::atomic<std::uint64_t> seen{0};
  std::atomic<bool> stop{false};
  std::thread completer([&] {
    for (std::uint64_t i = 0; i < rounds && !stop; ++i) {
      while (i - seen.load() >= kAhead && !stop) sched_yield();
      ASSERT_EQ(post_receive(by, i, nullptr, 0, 0), 0);
    }
  });
  std::uint64_t next = 0;
  unsigned events = 0;
  const auto take_all = [&] {
    ibv_wc wcs[16];
    int found;
    while ((found = ibv_poll_cq(queue, 16, wcs)) > 0) {
      for (int i = 0; i < found; ++i) {
        EXPECT_EQ(wcs[i].wr_id, next);
        ++next;
      }
      seen = next;
    }
  };
  while (next < rounds && !HasFailure()) {
    ASSERT_EQ(ibv_req_notify_cq(queue, 0), 0);
    const std::uint64_t before = next;
    take_all();
    if (next != before) continue;
    pollfd wait{told->fd, POLLIN, 0};
    if (::poll(&wait, 1, kDefaultWaitMs) != 1) {
      ADD_FAILURE() << "no wakeup in round " << next;
      break;
    }
    ibv_cq* named = nullptr;
    void* cookie = nullptr;
    ASSERT_EQ(ibv_get_cq_event(told, &named, &cookie), 0);
    ++events;
    take_all();
  }
  stop = true;
  completer.join();
  ibv_ack_cq_events(queue, events);
  EXPECT_EQ(next, rounds);
}

}  // namespace
}  // namespace verbatim::harness
