// SPDX-License-Identifier: BSD-2-Clause
//
// Our own memory regions: keys are handed out, records published and retired.
//
// Any thread may call; a spin lock guards the free list only. A key is index << 8 | generation;
// freed indices wait in a queue, so that a stale key stays wrong for as long as possible.
//
// Retiring is a promise: when it returns 0, no peer and no thread of ours touches the range through
// the retired key (runtime design: deregistration).
#pragma once

#include <new>

#include "providers/shm/memory/region_fast.hpp"
#include "runtime/sync/spin_lock.hpp"

namespace verbatim::shm {

class RegionTable {
 public:
  /// Publishes a region (its serial is ours to give). 0 and the key, or ENOMEM.
  int publish(const Region& region, std::uint32_t& key) noexcept;
  /// The three of a window: a key that means nothing yet (0 or ENOMEM); a key of the same index,
  /// whatever its last byte, that means `region`, or nothing again; and the end of all of them.
  int reserve(std::uint32_t& key) noexcept;
  void show(std::uint32_t key, const Region& region) noexcept;
  /// A full fence: whoever is odd before it has seen it gone, or can be waited for.
  void hide(std::uint32_t key) noexcept;
  void release(std::uint32_t key) noexcept;
  /// Gives what `key` means another meaning, and the same key. EBUSY as retire(): it means what it
  /// meant before.
  int change(std::uint32_t key, const Region& region, bool may_be_written) noexcept;
  /// Makes `key` mean nothing and waits until nobody uses it. EBUSY after a bound: somebody was
  /// stopped in the middle of a copy; the key stays dead, and the same call may be made again.
  int retire(std::uint32_t key, bool may_be_written) noexcept;
  /// Who waits until nobody touches memory by a key that was valid a moment ago, false: not within
  /// its bound. Said once, before the first key is given: it knows the queue pairs, and we do not.
  using AwaitUsers = bool (*)() noexcept;
  void set_users(AwaitUsers await) noexcept { await_users_ = await; }
  /// Forgets all (the node stops).
  void reset() noexcept;
  /// In a forked child: whoever had the lock was a thread of the parent's. An index that it was in
  /// the middle of taking or giving back may be lost, none is given twice.
  void remake_lock() noexcept { ::new (&lock_) SpinLock; }

 private:
  void give_back(std::uint32_t index) noexcept;
  std::uint64_t next_serial() noexcept;
  /// A fresh index, backed, with its next generation: 0 or ENOMEM.
  int take(std::uint32_t& key) noexcept;

  AwaitUsers await_users_ = nullptr;
  SpinLock lock_;
  std::uint32_t used_ = 0;       ///< indices ever handed out; index 0 never is
  std::uint32_t in_use_ = 0;     ///< of those, also a forked child's inherited ones
  std::uint32_t free_head_ = 0;  ///< queue of freed indices, linked through next_
  std::uint32_t free_tail_ = 0;
  std::uint32_t next_[kMaxRegions] = {};  // zero pages until touched
  std::uint8_t generation_[kMaxRegions] = {};
  std::uint64_t serials_ = 0;  ///< registrations ever made
};

/// The process has one table, as it has one segment.
extern RegionTable region_table;

}  // namespace verbatim::shm
