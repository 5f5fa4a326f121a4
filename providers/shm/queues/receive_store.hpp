// SPDX-License-Identifier: BSD-2-Clause
//
// Posted receives: where their bytes go, in our segment so that senders can place large messages
// themselves, and what only we need to know of them. A queue pair has a store of its own, or takes
// from that of a shared receive queue. Who may fill it and who may read it is for the owner's locks
// to say.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/wire/layout.hpp"
#include "runtime/verbs/queue_memory.hpp"
#include "runtime/verbs/software/posted_receives.hpp"

namespace verbatim::shm {

/// Publishes a receive; pairs with the load in Receives::length().
[[gnu::always_inline]] inline void show_receive(std::atomic<std::uint64_t>& credit,
                                                std::uint32_t lap, std::uint32_t bytes) noexcept {
  credit.store(Credit::make(lap, bytes < Credit::kLengthMask ? bytes : Credit::kLengthMask, false),
               std::memory_order_release);
}

using Receive = PostedReceive<ReceiveSge>;

/// Of the places that a queue of so many receives has.
constexpr std::uint32_t places_log(std::uint32_t receives) noexcept {
  return static_cast<std::uint32_t>(std::countr_zero(std::bit_ceil(std::max(receives, 1u))));
}

struct ReceiveStore : PostedReceives<ReceiveSge> {
  std::uint32_t log = 0;                          ///< of the places, see resize()
  bool is_reserved = false;                       ///< room in the segment is, and is not made yet
  std::atomic<std::uint64_t>* credits = nullptr;  ///< nullptr until the first receive

  /// Has 1 << `entries_log` entries from now on. REQUIRES: nothing was made.
  void resize(std::uint32_t entries_log) noexcept {
    log = entries_log;
    mask = (std::uint64_t{1} << entries_log) - 1;
  }
  std::uint32_t lap(std::uint64_t index) const noexcept {
    return static_cast<std::uint32_t>(index >> log) + 1;
  }
  /// A receive of one SGE; what it was filled with before may have had more.
  [[gnu::always_inline]] void fill_one(std::uint64_t index, const ReceiveSge& sge,
                                       std::uint64_t wr_id) const noexcept {
    const std::uint64_t place = at(index);
    ReceiveSge* const first = sges + place * max_sge;
    *first = sge;
    if (max_sge != 1) first[1].length = 0;
    wr_ids[place] = wr_id;
  }

  /// Has receives `from` to `to` of another store, which has them still. REQUIRES: room for them.
  [[gnu::cold]] void copy_from(const ReceiveStore& other, std::uint64_t from,
                               std::uint64_t to) noexcept;

  /// Makes what only we know of receives. False: no memory.
  [[gnu::cold]] bool make_own(const QueueMemory& memory) noexcept;
  /// Sees that there will be room for receives. False: there is none.
  [[gnu::cold]] bool reserve() noexcept;
  /// Makes room for receives: where it lies in the segment, or 0 (no memory). REQUIRES: reserve().
  [[gnu::cold]] std::uint64_t make(const QueueMemory& memory) noexcept;
  /// Gives the room back that lay at `offset`; what only we know stays for the next time, and with
  /// `stays_reserved` there will be room again.
  [[gnu::cold]] void release(std::uint64_t offset, bool stays_reserved) noexcept;
  /// Of room that is reserved by `owner`, whose record in the segment that is: there need be none.
  [[gnu::cold]] void give_up(const void* owner) noexcept;
  [[gnu::cold]] void free(const QueueMemory& memory) noexcept;

  /// Writes receive number `index` and returns the credit that publishes it. REQUIRES: check().
  std::uint64_t fill(std::uint64_t index, const ibv_recv_wr& wr, const KeyHolder& keys) noexcept;

  /// What is made in the segment.
  std::size_t shown_bytes() const noexcept { return shown_bytes(log); }
  std::size_t shown_bytes(std::uint32_t entries_log) const noexcept {
    return (sizeof(std::uint64_t) + max_sge * sizeof(ReceiveSge)) << entries_log;
  }
};

}  // namespace verbatim::shm
