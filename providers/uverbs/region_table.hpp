// SPDX-License-Identifier: BSD-2-Clause
// The memory regions of an open device by their local keys: what was registered, for whoever asks
// why a request could not use it. The kernel judges keys and tells nobody how. Any thread (one
// mutex); registration puts a region in and takes it out in constant time, nothing else comes here
// before something has failed. Regions are linked through themselves, so nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/sync/mutex.hpp"

namespace verbatim::uverbs {

/// A copy of what was registered.
struct RegionFacts {
  std::uint32_t lkey = 0;
  std::uint32_t pd = 0;      ///< the kernel's handle
  std::uint32_t access = 0;  ///< IBV_ACCESS_*
  std::uint64_t first = 0;   ///< address by which requests name it
  std::uint64_t bytes = 0;
};

/// What a region has for the table; under the table's mutex while it is in one.
struct RegionEntry {
  RegionFacts facts;
  RegionEntry* next = nullptr;
  RegionEntry** link = nullptr;  ///< what points here; null: in no table
};

class RegionTable {
 public:
  void add(RegionEntry& entry, const RegionFacts& facts) noexcept;
  /// Whether it was in the table.
  bool remove(RegionEntry& entry) noexcept;
  /// False: no region has this key.
  [[nodiscard]] bool find(std::uint32_t lkey, RegionFacts& out) noexcept;

 private:
  static constexpr std::size_t kBuckets = 256;
  /// Drivers count their regions in other bits of the key each.
  [[nodiscard]] RegionEntry*& bucket(std::uint32_t lkey) noexcept {
    return buckets_[(lkey * 0x9e3779b1u) >> 24];
  }
  static_assert(kBuckets == 1u << 8);

  Mutex mutex_;
  RegionEntry* buckets_[kBuckets] = {};
};

}  // namespace verbatim::uverbs
