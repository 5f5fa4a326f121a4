// SPDX-License-Identifier: BSD-2-Clause
//
// What a key of shm means, in our own table and in a peer's: runtime/verbs/software/key_record.hpp
// and local_keys_fast.hpp, over records that also say where in an arena the memory lies. A peer's
// record is the peer's word; the caller's odd `active` word keeps its owner from reusing the memory
// while the copy is in use (see RegionTable::retire).
#pragma once

#include "providers/shm/wire/layout.hpp"
#include "runtime/base/shared_word.hpp"
#include "runtime/verbs/software/local_keys_fast.hpp"

namespace verbatim::shm {

struct Region : KeyMeaning {
  std::uint64_t arena_offset;
  std::uint32_t arena;
};

/// False when `key` means nothing in `table`.
inline bool find_region(const RegionRecord* table, std::uint32_t capacity, std::uint32_t key,
                        Region& out) noexcept {
  const RegionRecord* const record = find_key(table, capacity, key, out);
  if (record == nullptr) [[unlikely]]
    return false;
  out.arena_offset = load_relaxed(record->arena_offset);
  out.arena = load_relaxed(record->arena);
  return true;
}

/// A table for authorize().
struct RegionView {
  const RegionRecord* records;
  std::uint32_t capacity;

  [[gnu::always_inline]] bool find(std::uint32_t key, Region& out) const noexcept {
    return find_region(records, capacity, key, out);
  }
};

/// Is it memory of this domain, whether or not it may be missing?
inline bool is_of_domain(const Region& region, std::uint32_t pd) noexcept {
  return holder::is_of_domain(region.pd, pd);
}

/// Whose keys a request may name. Null memory is beyond them (find_local_range).
using KeyHolder = OwnKeys<RegionRecord>;
using KeyInARow = KeysInARow<RegionRecord>;

}  // namespace verbatim::shm
