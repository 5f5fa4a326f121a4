// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_waiting.hpp"

#include <poll.h>
#include <sched.h>

#include <cerrno>
#include <cstring>

#include "perf/cli/failure.hpp"

namespace verbatim::cli {

void PerfWaiting::sleep() {
  // Armed before the caller looks once more: what completes in between raises the event.
  bool all = true;
  for (Armed& queue : queues_) {
    if (queue.armed) continue;
    if (const int error = ibv_req_notify_cq(queue.cq, 0)) {
      fail("Couldn't request CQ notification: %s", std::strerror(error));
    }
    queue.armed = true;
    all = false;
  }
  if (!all) return;
  if (!wait_for(channel_->fd, POLLIN, kSliceMs, stop_)) return look_around();
  ibv_cq* of = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(channel_, &of, &context) != 0) {
    fail("Failed to get cq_event: %s", std::strerror(errno));
  }
  ibv_ack_cq_events(of, 1);
  for (Armed& queue : queues_) {
    if (queue.cq == of) queue.armed = false;
  }
}

void PerfWaiting::look_for_stop() const {
  if (stop_.pending()) throw Stopped{};
}

void PerfWaiting::look_around() {
  using Clock = std::chrono::steady_clock;
  look_for_stop();
  const auto now = Clock::now();
  if (!since_) since_ = now;
  const long silent = std::chrono::duration_cast<std::chrono::milliseconds>(now - *since_).count();
  if (silent >= kDepartedMs && peer_.peer_has_left()) {
    if (peer_.endless()) throw PeerHasLeft{};
    fail(
        "the other side left before the test was over; look at its own message, and at its "
        "options");
  }
  if (silent >= kThroughMs && peer_.peer_is_through()) {
    fail(
        "the other side is through, but not all messages have come: UC and UD lose those that find "
        "no receive (a larger -r, a smaller -t), or it runs with another -n or -q");
  }
  if (silent >= kSilenceMs) {
    fail(
        "nothing has come for %ld s: the other side is stuck, or runs with other options "
        "(-s, -n, -q, -r), or messages were lost",
        silent / 1000);
  }
  // Both sides may share a core, and then the one that spins keeps the other from answering.
  if (channel_ == nullptr) sched_yield();
}

}  // namespace verbatim::cli
