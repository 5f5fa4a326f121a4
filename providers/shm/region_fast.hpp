// SPDX-License-Identifier: BSD-2-Clause
//
// What a key means: the look-up that every message pays, in our own table and in a peer's.
//
// A record is copied to locals once and judged by the copy, since a peer may rewrite its table at
// any moment. `serial` is read first (acquire): it pairs with the release in RegionTable::publish,
// so the copy is whole, and the caller's odd `active` word keeps the owner from reusing the memory
// while the copy is in use (see RegionTable::retire).
#pragma once

#include <type_traits>

#include "providers/shm/fabric/layout.hpp"

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

/// Words that cross a process border are read once and written whole; what orders them is the
/// atomic that is stored after them.
template <class T>
inline T peek(const T& shared) noexcept {
  return __atomic_load_n(&shared, __ATOMIC_RELAXED);
}
template <class T>
inline void poke(T& shared, std::type_identity_t<T> value) noexcept {
  __atomic_store_n(&shared, value, __ATOMIC_RELAXED);
}

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

/// find_local_bytes() for requests in a row, of one holder and with the same rights, which mostly
/// name one key: while its record is the one that was judged, they need its bounds alone.
class KeyInARow {
 public:
  explicit KeyInARow(const KeyHolder& keys) noexcept : keys_(keys) {}

  template <class Byte>
  [[gnu::always_inline]] bool find_local_bytes(std::uint32_t lkey, std::uint64_t address,
                                               std::uint64_t bytes, std::uint32_t need,
                                               Byte*& at) noexcept {
    if (lkey != lkey_ || serial_->load(std::memory_order_acquire) != serial_seen_) [[unlikely]] {
      if (!judge(lkey, need)) return false;
    }
    const std::uint64_t offset = address - iova_;  // as there
    if (offset > length_ || bytes > length_ - offset) [[unlikely]]
      return false;
    at = reinterpret_cast<Byte*>(address_ + offset);
    return true;
  }

 private:
  [[gnu::always_inline]] bool judge(std::uint32_t lkey, std::uint32_t need) noexcept {
    const RegionRecord* const record = find_local_key(keys_, lkey, need, serial_seen_);
    if (record == nullptr) {
      serial_seen_ = kNever;
      return false;
    }
    serial_ = &record->serial;
    iova_ = peek(record->iova);
    length_ = peek(record->length);
    address_ = peek(record->address);
    lkey_ = lkey;
    return true;
  }

  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  const KeyHolder keys_;
  const std::atomic<std::uint64_t>* serial_ = &keys_.regions->serial;
  std::uint64_t serial_seen_ = kNever;
  std::uint64_t iova_ = 0;
  std::uint64_t length_ = 0;
  std::uint64_t address_ = 0;
  std::uint32_t lkey_ = 0;
};

}  // namespace verbatim::shm
