// SPDX-License-Identifier: BSD-2-Clause
//
// Our own memory regions: keys are handed out, records published and retired, as
// runtime/verbs/software/key_table.hpp says. The records lie in our segment, where peers read them,
// and who may still use a key is known by the queue pairs.
//
// Retiring is a promise: when it returns 0, no peer and no thread of ours touches the range through
// the retired key (runtime design: deregistration). Any thread.
#pragma once

#include "providers/shm/memory/region_fast.hpp"
#include "runtime/verbs/software/key_table.hpp"

namespace verbatim::shm {

/// The records of our segment, for KeyTable.
struct SegmentKeys {
  static constexpr std::uint32_t kMost = kMaxRegions;
  using Record = RegionRecord;
  using Meaning = Region;

  static RegionRecord* records() noexcept;
  static std::uint32_t capacity() noexcept;
  static int back(const RegionRecord& record) noexcept;
  static void write_rest(RegionRecord& record, const Region& region) noexcept;
  static void counted(std::uint32_t keys) noexcept;
};

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
  /// Forgets all (the process leaves the fabric).
  void reset() noexcept;
  /// In a forked child.
  void remake_lock() noexcept { keys_.remake_lock(); }

 private:
  /// The wait for whoever may be in the middle of a copy; of memory that nobody copies, none.
  auto users_of(bool may_be_written) const noexcept {
    return [this, may_be_written]() noexcept { return !may_be_written || await_users_(); };
  }

  AwaitUsers await_users_ = nullptr;
  KeyTable<SegmentKeys> keys_;
};

/// The process has one table, as it has one segment.
extern RegionTable region_table;

}  // namespace verbatim::shm
