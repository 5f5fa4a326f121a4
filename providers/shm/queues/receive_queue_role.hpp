// SPDX-License-Identifier: BSD-2-Clause
//
// The receives that a queue pair has of its own, as they are posted: under the receive lock. `tail`
// publishes from here to the responder.
//
// Memory is by what is posted at once, not by what the queue was made for: it begins with places for
// 128 and has up to eight times as many when these are full. The peer's sender finds the new ones when
// it finds no receive in the old, which stay where they are until the queue is reset: a quarter of what
// it has then at most, or half of 256. Room for all of them is reserved while the queue is made.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "providers/shm/queues/receive_store.hpp"
#include "runtime/base/cache_line.hpp"
#include "runtime/sync/biased_lock.hpp"

namespace verbatim::shm {

struct alignas(kCacheLine) ReceiveQueue {
  // On the first line, what a message needs that is taken; on the second, who posts.
  std::atomic<std::uint64_t> tail{0};
  ReceiveStore store;  ///< its `max` is what the places are enough for, at most `max`
  std::uint8_t credit_lines_ahead = 2;  ///< that a list of receives asks for: as long as the last
  alignas(kCacheLine) BiasedLock lock;
  /// Of a thread domain: who may touch the send lock's word, which its own thread stores plainly.
  /// Here, since that thread has this line anyway.
  BiasedLock domain_lock;
  std::uint32_t max = 0;  ///< receives that may be posted at once
  std::uint8_t first_log = 0;
  std::uint8_t last_log = 0;
  std::uint8_t left_count = 0;
  static constexpr std::size_t kMostLeft = 3;
  std::uint64_t left[kMostLeft]{};  ///< where they were before, see namespace extent

  static constexpr std::uint32_t kFirstLog = 7;
  static constexpr std::uint32_t kGrowthLog = 3;

  /// Before the first receive. `whole`: all places from the beginning.
  void size(std::uint32_t receives, std::uint32_t max_sge, bool whole) noexcept {
    max = receives;
    last_log = static_cast<std::uint8_t>(places_log(receives));
    first_log = whole ? last_log : std::min<std::uint8_t>(last_log, kFirstLog);
    store.max_sge = static_cast<std::uint16_t>(max_sge);
    resize(first_log);
  }
  bool may_grow() const noexcept { return store.log != last_log; }

  /// Sees that there will be room for the places of each time. False: there is none.
  [[gnu::cold]] bool reserve() noexcept;
  /// Makes the first places: where they lie, see namespace extent; 0: no memory.
  [[gnu::cold]] std::uint64_t make(const QueueMemory& memory) noexcept;
  /// Has more places, with what waits from receive number `head` on: where they lie; 0: no memory.
  /// `taking`: the receive CQ's lock. REQUIRES: may_grow(), the receive lock.
  [[gnu::cold]] std::uint64_t grow(const QueueMemory& memory, BiasedLock& taking,
                                   const std::atomic<std::uint64_t>& head) noexcept;
  /// Gives the places back, the last of which lie at `place`; room stays reserved.
  [[gnu::cold]] void release(std::uint64_t place, const QueueMemory& memory) noexcept;
  /// After release(), by who owns `owner` in the segment.
  [[gnu::cold]] void give_up(const void* owner) noexcept;

 private:
  void resize(std::uint32_t log) noexcept {
    store.resize(log);
    store.max = std::min(max, std::uint32_t{1} << log);
  }
  /// In steps of kGrowthLog to the last one; the first step is what is left.
  std::uint32_t log_after(std::uint32_t log) const noexcept {
    return last_log - (last_log - log - 1) / kGrowthLog * kGrowthLog;
  }
  void give_up_until(std::uint32_t log) noexcept;
};

}  // namespace verbatim::shm
