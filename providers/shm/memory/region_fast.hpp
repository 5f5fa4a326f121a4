// SPDX-License-Identifier: BSD-2-Clause
//
// What a key means: the look-up that every message pays, in our own table and in a peer's.
//
// A record is copied to locals once and judged by the copy, since a peer may rewrite its table at
// any moment. `serial` is read first (acquire): it pairs with the release in RegionTable::publish,
// so the copy is whole, and the caller's odd `active` word keeps the owner from reusing the memory
// while the copy is in use (see RegionTable::retire).
#pragma once

#include "providers/shm/wire/layout.hpp"
#include "runtime/base/shared_word.hpp"
#include "runtime/verbs/software/key_holder.hpp"

namespace verbatim::shm {

struct Region {
  std::uint64_t serial;
  std::uint64_t iova;
  std::uint64_t length;
  std::uint64_t address;
  std::uint64_t arena_offset;
  std::uint32_t access;
  std::uint32_t pd;
  std::uint32_t arena;

  /// Is [start, start + bytes) inside? `offset` is then its distance from the region's first byte.
  bool contains(std::uint64_t start, std::uint64_t bytes, std::uint64_t& offset) const noexcept {
    offset = start - iova;  // wraps to something huge when start lies before
    return offset <= length && bytes <= length - offset;
  }
};

/// False when `key` means nothing in `table`.
inline bool find_region(const RegionRecord* table, std::uint32_t capacity, std::uint32_t key,
                        Region& out) noexcept {
  const std::uint32_t index = key >> 8;
  if (index >= capacity || key == 0) [[unlikely]]
    return false;
  const RegionRecord& record = table[index];
  out.serial = record.serial.load(std::memory_order_acquire);
  if (out.serial == 0 || peek(record.key) != key) [[unlikely]]
    return false;
  out.iova = peek(record.iova);
  out.length = peek(record.length);
  out.address = peek(record.address);
  out.arena_offset = peek(record.arena_offset);
  out.access = peek(record.access);
  out.pd = peek(record.pd);
  out.arena = peek(record.arena);
  return true;
}

/// Is it memory of this domain, whether or not it may be missing?
inline bool is_of_domain(const Region& region, std::uint32_t pd) noexcept {
  return holder::is_of_domain(region.pd, pd);
}

/// Whose keys a request may name.
struct KeyHolder {
  const RegionRecord* regions;
  std::uint32_t capacity;
  std::uint32_t pd;
};

/// The record of a key for memory of this holder with the rights `need`, and its serial; nullptr:
/// it is none. The one judge of local keys, of sends and of receives.
[[gnu::always_inline]] inline const RegionRecord* find_local_key(const KeyHolder& keys,
                                                                 std::uint32_t lkey,
                                                                 std::uint32_t need,
                                                                 std::uint64_t& serial) noexcept {
  const std::uint32_t index = lkey >> 8;
  if (index >= keys.capacity) [[unlikely]]
    return nullptr;
  // Our own table: its words need no copy to be judged by. Record 0 is nobody's, so key 0 finds
  // nothing.
  const RegionRecord& record = keys.regions[index];
  serial = record.serial.load(std::memory_order_acquire);
  if (serial == 0 || peek(record.key) != lkey || peek(record.pd) != keys.pd ||
      (peek(record.access) & need) != need) [[unlikely]]
    return nullptr;
  return &record;
}

/// Where the bytes of an SGE of ours lie. False: its key is not for memory of this holder, with the
/// rights `need`, that has all of them. Null memory is beyond it (find_local_range).
template <class Byte>
[[gnu::always_inline]] inline bool find_local_bytes(const KeyHolder& keys, std::uint32_t lkey,
                                                    std::uint64_t address, std::uint64_t bytes,
                                                    std::uint32_t need, Byte*& at) noexcept {
  std::uint64_t serial;
  const RegionRecord* const record = find_local_key(keys, lkey, need, serial);
  if (record == nullptr) [[unlikely]]
    return false;
  const std::uint64_t offset = address - peek(record->iova);  // huge when address lies before it
  const std::uint64_t length = peek(record->length);
  if (offset > length || bytes > length - offset) [[unlikely]]
    return false;
  at = reinterpret_cast<Byte*>(peek(record->address) + offset);
  return true;
}

/// The memory of a key that was judged.
struct RoomOfKey {
  std::uint32_t lkey;
  std::uint64_t iova;
  std::uint64_t length;
  std::uint64_t base;

  template <class Byte>
  [[gnu::always_inline]] bool find(std::uint64_t address, std::uint64_t bytes,
                                   Byte*& at) const noexcept {
    const std::uint64_t offset = address - iova;  // huge when address lies before it
    if (offset > length || bytes > length - offset) [[unlikely]]
      return false;
    at = reinterpret_cast<Byte*>(base + offset);
    return true;
  }
};

/// find_local_bytes() for requests in a row, of one holder and with the same rights, which mostly
/// name one key: while its record is the one that was judged, they need its bounds alone.
class KeyInARow {
 public:
  explicit KeyInARow(const KeyHolder& keys) noexcept : keys_(keys) {}

  /// The memory of a key, for a handful of requests that are done with before the next is judged;
  /// nullptr: the key is none.
  [[gnu::always_inline]] const RoomOfKey* find_room(std::uint32_t lkey,
                                                    std::uint32_t need) noexcept {
    if (lkey != room_.lkey || serial_->load(std::memory_order_acquire) != serial_seen_)
        [[unlikely]] {
      if (!judge(lkey, need)) return nullptr;
    }
    return &room_;
  }

  template <class Byte>
  [[gnu::always_inline]] bool find_local_bytes(std::uint32_t lkey, std::uint64_t address,
                                               std::uint64_t bytes, std::uint32_t need,
                                               Byte*& at) noexcept {
    const RoomOfKey* const room = find_room(lkey, need);
    return room != nullptr && room->find(address, bytes, at);
  }

 private:
  [[gnu::always_inline]] bool judge(std::uint32_t lkey, std::uint32_t need) noexcept {
    const RegionRecord* const record = find_local_key(keys_, lkey, need, serial_seen_);
    if (record == nullptr) {
      serial_seen_ = kNever;
      return false;
    }
    serial_ = &record->serial;
    room_ = {lkey, peek(record->iova), peek(record->length), peek(record->address)};
    return true;
  }

  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  const KeyHolder keys_;
  const std::atomic<std::uint64_t>* serial_ = &keys_.regions->serial;
  std::uint64_t serial_seen_ = kNever;
  RoomOfKey room_{};
};

}  // namespace verbatim::shm
