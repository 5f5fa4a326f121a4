// SPDX-License-Identifier: BSD-2-Clause
//
// The requests that wait in a queue pair's send queue (pending_send.hpp). Under the send lock, but for
// its place among those that a completion queue moves on.
#pragma once

#include <cstdint>

#include "providers/shm/queues/pending_send.hpp"
#include "providers/shm/queues/work_batch.hpp"
#include "runtime/verbs/software/posted_sends.hpp"
#include "runtime/verbs/software/send_end.hpp"

namespace verbatim::shm {

struct CountedQp;

struct SendQueue {
  std::uint32_t head = 0;  ///< waiting ones: [head, tail)
  std::uint32_t tail = 0;
  PostedSends<PendingSend, kMaxInline> store;
  Progress progress{};
  /// The head waits until processes have met, or an endpoint is there.
  bool awaits_connection = false;
  Drain drain;                   ///< in SQD the request at the head has begun, or none
  bool has_posted = false;       ///< a request has waited, once
  CountedQp* counted = nullptr;  ///< what completion counters count of the queue pair
  FirstError first_error;
};

}  // namespace verbatim::shm
