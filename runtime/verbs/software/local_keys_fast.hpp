// SPDX-License-Identifier: BSD-2-Clause
// Local keys, which every SGE of every request names: where their bytes lie, in the fewest
// instructions. The table is our own, so its words need no copy to be judged by; what is not a plain
// region of the domain is refused here, and asked for by the provider behind that (key_holder.hpp).
#pragma once

#include "runtime/verbs/software/key_record.hpp"

namespace verbatim {

/// Whose keys a request may name.
template <class Record>
struct OwnKeys {
  const Record* regions;
  std::uint32_t capacity;
  std::uint32_t pd;
};

/// The record of a key for memory of this holder with the rights `need`, and its serial; nullptr:
/// it is none. The one judge of local keys, of sends and of receives. REQUIRES: record 0 is
/// nobody's, so that key 0 finds nothing.
template <class Record>
[[gnu::always_inline]] inline const Record* find_local_key(const OwnKeys<Record>& keys,
                                                           std::uint32_t lkey, std::uint32_t need,
                                                           std::uint64_t& serial) noexcept {
  const std::uint32_t index = key_index(lkey);
  if (index >= keys.capacity) [[unlikely]]
    return nullptr;
  const Record& record = keys.regions[index];
  serial = record.serial.load(std::memory_order_acquire);
  if (serial == 0 || load_relaxed(record.key) != lkey || load_relaxed(record.pd) != keys.pd ||
      (load_relaxed(record.access) & need) != need) [[unlikely]]
    return nullptr;
  return &record;
}

/// Where the bytes of an SGE of ours lie. False: its key is not for memory of this holder, with the
/// rights `need`, that has all of them.
template <class Record, class Byte>
[[gnu::always_inline]] inline bool find_local_bytes(const OwnKeys<Record>& keys, std::uint32_t lkey,
                                                    std::uint64_t address, std::uint64_t bytes,
                                                    std::uint32_t need, Byte*& at) noexcept {
  std::uint64_t serial;
  const Record* const record = find_local_key(keys, lkey, need, serial);
  if (record == nullptr) [[unlikely]]
    return false;
  // Huge when address lies before it.
  const std::uint64_t offset = address - load_relaxed(record->iova);
  const std::uint64_t length = load_relaxed(record->length);
  if (offset > length || bytes > length - offset) [[unlikely]]
    return false;
  at = reinterpret_cast<Byte*>(load_relaxed(record->address) + offset);
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
template <class Record>
class KeysInARow {
 public:
  explicit KeysInARow(const OwnKeys<Record>& keys) noexcept : keys_(keys) {}

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
    const Record* const record = find_local_key(keys_, lkey, need, serial_seen_);
    if (record == nullptr) {
      serial_seen_ = kNever;
      return false;
    }
    serial_ = &record->serial;
    room_ = {lkey, load_relaxed(record->iova), load_relaxed(record->length),
             load_relaxed(record->address)};
    return true;
  }

  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  const OwnKeys<Record> keys_;
  const std::atomic<std::uint64_t>* serial_ = &keys_.regions->serial;
  std::uint64_t serial_seen_ = kNever;
  RoomOfKey room_{};
};

}  // namespace verbatim
