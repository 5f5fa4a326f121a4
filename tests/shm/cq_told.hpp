// SPDX-License-Identifier: BSD-2-Clause
//
// A queue of this process (`a`) whose events tell of what another process (`b`) sends to it.
#pragma once

#include <poll.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>

#include "tests/support/expect.hpp"

namespace verbatim::harness {

inline constexpr Setting kApart{Placement::kTwoProcesses, MemoryKind::kMapped};

/// How often the library's own thread went to sleep, in this process.
inline std::uint64_t sleeps_of_service_thread() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm") >> std::ws, name);
    if (name != "verbatim-shm") continue;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("voluntary_ctxt_switches:")) return std::stoull(line.substr(24));
  }
  ADD_FAILURE() << "no service thread";
  return 0;
}

/// A receive queue of `a` with a channel, and who sends to it.
struct Told {
  Told(Pair& ends, ibv_comp_channel* channel)
      : pair(ends),
        cq(ibv_create_cq(pair.a.here().context(), 256, nullptr, channel, 0)),
        at_a(pair.a.allocate(MemoryKind::kMapped, 64)),
        at_b(pair.b.allocate(MemoryKind::kMapped, 64)) {
    QpWish wish;
    wish.receive_cq = cq_id = pair.a.here().adopt_cq(cq);
    std::tie(qa, qb) = pair.add_qps(wish, {});
  }
  ~Told() {
    EXPECT_EQ(pair.a.here().destroy_qp(qa.id), 0);
    EXPECT_EQ(pair.a.here().destroy_cq(cq_id), 0);
  }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;
  void post(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i)
      expect_posted(pair.a.post_receive(qa, receive(i, slice(at_a, 0, 64))));
  }
  void come() { expect_posted(pair.b.post_send(qb, send(1, slice(at_b, 0, 8)))); }
  void sent() { EXPECT_EQ(pair.b.poll_sends(qb, 1)[0].status, IBV_WC_SUCCESS); }
  void take() { EXPECT_EQ(pair.a.poll_receives(qa, 1)[0].status, IBV_WC_SUCCESS); }

  Pair& pair;
  ibv_cq* cq;
  std::int32_t cq_id;
  RegionInfo at_a;
  RegionInfo at_b;
  QpInfo qa;
  QpInfo qb;
};

inline ibv_cq* get(ibv_comp_channel* channel) {
  ibv_cq* named = nullptr;
  void* cookie = nullptr;
  EXPECT_EQ(ibv_get_cq_event(channel, &named, &cookie), 0);
  if (named != nullptr) ibv_ack_cq_events(named, 1);
  return named;
}

inline bool is_readable(const ibv_comp_channel* channel, int wait_ms) {
  pollfd wait{channel->fd, POLLIN, 0};
  return ::poll(&wait, 1, wait_ms) == 1;
}

}  // namespace verbatim::harness
