// SPDX-License-Identifier: BSD-2-Clause
//
// The requests that wait in a queue pair's send queue (pending_send.hpp). Under the send lock, but for
// its place among those that a completion queue moves on.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "providers/shm/queues/pending_send.hpp"
#include "providers/shm/queues/work_batch.hpp"
#include "runtime/verbs/software/posted_sends.hpp"

namespace verbatim::shm {

struct CountedQp;

struct SendQueue {
  std::uint32_t head = 0;  ///< waiting ones: [head, tail)
  std::uint32_t tail = 0;
  PostedSends<PendingSend, kMaxInline> store;
  Progress progress{};
  /// The head waits until processes have met, or an endpoint is there.
  bool awaits_connection = false;
  /// In SQD: the request at the head had begun, and is finished. Anybody may read it.
  std::atomic<bool> finishes_head{false};
  bool has_posted = false;       ///< a request has waited, once
  bool tells_drained = false;    ///< an event says when it has been finished
  CountedQp* counted = nullptr;  ///< what completion counters count of the queue pair
  /// What the first request after the error ends in; those behind it flush.
  ibv_wc_status first_flush = IBV_WC_WR_FLUSH_ERR;
};

}  // namespace verbatim::shm
