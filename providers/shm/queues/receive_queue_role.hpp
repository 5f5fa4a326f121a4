// SPDX-License-Identifier: BSD-2-Clause
//
// The receives that a queue pair has of its own, as they are posted: under the receive lock. `tail`
// publishes from here to the responder.
#pragma once

#include <atomic>
#include <cstdint>

#include "providers/shm/queues/receive_store.hpp"
#include "runtime/base/cache_line.hpp"
#include "runtime/sync/biased_lock.hpp"

namespace verbatim::shm {

struct alignas(kCacheLine) ReceiveQueue {
  // On the first line, what a message needs that is taken; on the second, who posts.
  std::atomic<std::uint64_t> tail{0};
  ReceiveStore store;
  std::uint8_t credit_lines_ahead = 2;  ///< that a list of receives asks for: as long as the last
  alignas(kCacheLine) BiasedLock lock;
  /// Of a thread domain: who may touch the send lock's word, which its own thread stores plainly.
  /// Here, since that thread has this line anyway.
  BiasedLock domain_lock;
};

}  // namespace verbatim::shm
