// SPDX-License-Identifier: BSD-2-Clause
// Which queue pairs are in which multicast groups. The records lie where their owner wants them, be
// it memory that other processes read: the one writer publishes the number of a queue pair last, and
// readers look without a lock. A record has
//
//   std::atomic<std::uint32_t> qpn;   0: nobody's
//   std::uint64_t prefix, suffix;     the group's GID, as it lies in memory
//
// Joining and leaving: one thread at a time (the owner's lock). Looking: any thread or process. A
// reader may see a record whose group is replaced meanwhile, so it may miss one who joins or leaves
// in that moment, as on a wire. IBTA 10.5; man ibv_attach_mcast.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "runtime/base/shared_word.hpp"

namespace verbatim {

/// The number that a request to a group names (IBTA 10.5.2).
inline constexpr std::uint32_t kGroupQpn = 0xffffff;

/// A record for owners whose table has no layout of its own.
struct GroupMembership {
  std::atomic<std::uint32_t> qpn{0};
  std::uint64_t prefix = 0;
  std::uint64_t suffix = 0;
};

enum class Joined : std::uint8_t {
  kJoined,
  kAlready,    ///< it is in this group
  kGroupFull,  ///< as many as may be are in this group
  kTableFull
};

/// The two words of a group's GID.
struct GroupName {
  explicit GroupName(const ibv_gid& gid) noexcept {
    static_assert(sizeof(GroupName) == sizeof gid.raw);
    std::memcpy(this, gid.raw, sizeof *this);
  }
  template <class Record>
  [[nodiscard]] bool is_of(const Record& record) const noexcept {
    return load_relaxed(record.prefix) == prefix && load_relaxed(record.suffix) == suffix;
  }
  std::uint64_t prefix, suffix;
};

/// Calls f(number of a queue pair) for each member of the group in records [0, end), until it says
/// false.
template <class Record, class F>
void each_member(const Record* records, std::uint32_t end, const ibv_gid& gid, F f) noexcept {
  const GroupName group(gid);
  for (std::uint32_t i = 0; i < end; ++i) {
    // Pairs with the store in GroupTable::join().
    const std::uint32_t qpn = records[i].qpn.load(std::memory_order_acquire);
    if (qpn == 0 || !group.is_of(records[i])) continue;
    // Its place may have gone to another member meanwhile, of another group; pairs with the fence in
    // GroupTable::join().
    std::atomic_thread_fence(std::memory_order_acquire);
    if (records[i].qpn.load(std::memory_order_relaxed) != qpn) continue;
    if (!f(qpn)) return;
  }
}

/// The owner's view of a table of its own.
template <class Record>
class GroupTable {
 public:
  /// `end`: places that were ever used, of `capacity`.
  GroupTable(Record* records, std::uint32_t capacity, std::atomic<std::uint32_t>& end) noexcept
      : records_(records), capacity_(capacity), end_(end) {}

  /// `most`: so many may be in one group.
  Joined join(std::uint32_t qpn, const ibv_gid& gid, std::uint32_t most) noexcept {
    const GroupName group(gid);
    const std::uint32_t used = end_.load(std::memory_order_relaxed);
    std::uint32_t place = used;
    std::uint32_t members = 0;
    for (std::uint32_t i = used; i-- != 0;) {
      const std::uint32_t there = records_[i].qpn.load(std::memory_order_relaxed);
      if (there == 0) {
        place = i;
      } else if (group.is_of(records_[i])) {
        if (there == qpn) return Joined::kAlready;
        ++members;
      }
    }
    if (members >= most) return Joined::kGroupFull;
    if (place == capacity_) return Joined::kTableFull;
    Record& record = records_[place];
    // Who sees these words sees that the member before this one has left.
    std::atomic_thread_fence(std::memory_order_release);
    store_relaxed(record.prefix, group.prefix);
    store_relaxed(record.suffix, group.suffix);
    // Publishes the membership; pairs with the load in each_member().
    record.qpn.store(qpn, std::memory_order_release);
    if (place == used) end_.store(used + 1, std::memory_order_release);
    return Joined::kJoined;
  }

  /// False: it was not in this group.
  bool leave(std::uint32_t qpn, const ibv_gid& gid) noexcept {
    const GroupName group(gid);
    const std::uint32_t used = end_.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < used; ++i) {
      Record& record = records_[i];
      if (record.qpn.load(std::memory_order_relaxed) != qpn || !group.is_of(record)) continue;
      record.qpn.store(0, std::memory_order_release);
      return true;
    }
    return false;
  }

 private:
  Record* const records_;
  const std::uint32_t capacity_;
  std::atomic<std::uint32_t>& end_;
};

}  // namespace verbatim
