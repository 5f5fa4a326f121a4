// SPDX-License-Identifier: BSD-2-Clause
// What a key means: its record, the look-up, and the one judgement of who may do what with it. A key
// is index << 8 | generation; the index names a record, and a record says the whole key, so a stale
// key finds nothing.
//
// The record may lie where another process writes it. So it is copied once and judged by the copy.
// `serial` is read first (acquire) and pairs with the release in KeyTable: the copy is whole. What
// keeps the owner from reusing the memory while the copy is in use is the provider's (KeyTable,
// "await"). A provider whose records have more in them derives from both and copies the rest itself.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/base/cache_line.hpp"
#include "runtime/base/shared_word.hpp"
#include "runtime/verbs/failure.hpp"
#include "runtime/verbs/software/key_holder.hpp"

namespace verbatim {

/// A record for tables that have no layout of their own; any other has these members.
struct alignas(kCacheLine) KeyRecord {
  std::atomic<std::uint64_t> serial{0};  ///< 0 while it means nothing; none comes back
  std::uint64_t iova = 0;                ///< first address that requests name
  std::uint64_t length = 0;
  std::uint64_t address = 0;  ///< where iova lies in the owner's address space
  std::uint32_t key = 0;
  std::uint32_t access = 0;  ///< IBV_ACCESS_*
  std::uint32_t pd = 0;      ///< whose it is: namespace holder
};

struct KeyMeaning {
  std::uint64_t serial;
  std::uint64_t iova;
  std::uint64_t length;
  std::uint64_t address;
  std::uint32_t access;
  std::uint32_t pd;

  /// Is [start, start + bytes) inside? `offset` is then its distance from the first byte.
  [[nodiscard]] bool contains(std::uint64_t start, std::uint64_t bytes,
                              std::uint64_t& offset) const noexcept {
    offset = start - iova;  // wraps to something huge when start lies before
    return offset <= length && bytes <= length - offset;
  }
};

constexpr std::uint32_t key_index(std::uint32_t key) noexcept { return key >> 8; }

/// The record of `key` and what it means; nullptr: it means nothing in this table. The record is
/// only good for members that the caller copies and judges by itself.
template <class Record>
[[gnu::always_inline]] inline const Record* find_key(const Record* table, std::uint32_t capacity,
                                                     std::uint32_t key, KeyMeaning& out) noexcept {
  const std::uint32_t index = key_index(key);
  if (index >= capacity || key == 0) [[unlikely]]
    return nullptr;
  const Record& record = table[index];
  out.serial = record.serial.load(std::memory_order_acquire);
  if (out.serial == 0 || load_relaxed(record.key) != key) [[unlikely]]
    return nullptr;
  out.iova = load_relaxed(record.iova);
  out.length = load_relaxed(record.length);
  out.address = load_relaxed(record.address);
  out.access = load_relaxed(record.access);
  out.pd = load_relaxed(record.pd);
  return &record;
}

/// A table as whoever looks keys up sees it: the owner's own, or a peer's.
template <class Record>
struct KeyView {
  const Record* records;
  std::uint32_t capacity;

  [[gnu::always_inline]] bool find(std::uint32_t key, KeyMeaning& out) const noexcept {
    return find_key(records, capacity, key, out) != nullptr;
  }
};

/// What a request wants to do: all rights of `need`, on [start, start + bytes).
struct KeyUse {
  std::uint32_t key;
  std::uint32_t need;
  std::uint64_t start;
  std::uint64_t bytes;
};

/// The judgement of a key without a range (IBTA 10.6.6, 10.6.7): it means something, `admits` takes
/// its holder, it has the rights. KeyFault::kNone: all of that, and `out` is what it means. `out` is
/// filled for every fault but kUnknown.
template <class View, class Meaning, class Admits>
[[gnu::always_inline]] inline KeyFault authorize_key(const View& view, std::uint32_t key,
                                                     std::uint32_t need, Admits admits,
                                                     Meaning& out) noexcept {
  if (!view.find(key, out)) [[unlikely]]
    return KeyFault::kUnknown;
  if (!admits(out)) [[unlikely]]
    return holder::is_of_other_kind(out.pd) ? KeyFault::kWindow : KeyFault::kDomain;
  return (out.access & need) == need ? KeyFault::kNone : KeyFault::kRight;
}

/// ... and with a range, which lies `offset` behind the first byte that the key has.
template <class View, class Meaning, class Admits>
[[gnu::always_inline]] inline KeyFault authorize(const View& view, const KeyUse& use, Admits admits,
                                                 Meaning& out, std::uint64_t& offset) noexcept {
  const KeyFault fault = authorize_key(view, use.key, use.need, admits, out);
  if (fault != KeyFault::kNone) [[unlikely]]
    return fault;
  return out.contains(use.start, use.bytes, offset) ? KeyFault::kNone : KeyFault::kBounds;
}

}  // namespace verbatim
