// SPDX-License-Identifier: BSD-2-Clause
//
// The local side of a request: where the bytes of its SGEs lie, and copies from and to there. Any
// thread.
#pragma once

#include "providers/shm/memory/region_fast.hpp"

namespace verbatim::shm {

/// (Nothing is initialised: a request has an array of them, and mostly uses one.)
struct LocalRange {
  unsigned char* at;  ///< nullptr: null memory (null_memory.hpp)
  std::uint64_t length;
  bool on_demand;  ///< there may be no memory: only the kernel copies from and to it
};

/// find_local_range() of a key that is no plain region's.
[[gnu::cold, gnu::noinline]] bool find_unusual_range(const KeyHolder& keys, std::uint32_t lkey,
                                                     std::uint64_t address, std::uint64_t bytes,
                                                     std::uint32_t need, LocalRange& out) noexcept;

/// find_local_bytes() for every key that a request may name; null memory has every address and every
/// local right. False: the key does not allow it.
[[nodiscard]] inline bool find_local_range(const KeyHolder& keys, std::uint32_t lkey,
                                           std::uint64_t address, std::uint64_t bytes,
                                           std::uint32_t need, LocalRange& out) noexcept {
  out = {nullptr, bytes, false};
  return find_local_bytes(keys, lkey, address, bytes, need, out.at) ||
         find_unusual_range(keys, lkey, address, bytes, need, out);
}

/// Walks a message's ranges from byte `from` on: calls f(part of a range, distance from `from`)
/// until that says false. False: it has.
template <class F>
bool walk(const LocalRange* ranges, std::uint32_t count, std::uint64_t from, std::uint64_t length,
          F f) noexcept {
  std::uint64_t distance = 0;
  for (std::uint32_t i = 0; i < count && distance < length; ++i) {
    const LocalRange& range = ranges[i];
    if (from >= range.length) {
      from -= range.length;
      continue;
    }
    std::uint64_t n = range.length - from;
    if (n > length - distance) n = length - distance;
    if (!f(LocalRange{range.at == nullptr ? nullptr : range.at + from, n, range.on_demand},
           distance))
      return false;
    distance += n;
    from = 0;
  }
  return true;
}

/// Copies between a flat buffer and bytes [from, from + length) of the message in `ranges`. False:
/// what is on demand is not there.
[[nodiscard]] bool gather(unsigned char* to, const LocalRange* ranges, std::uint32_t count,
                          std::uint64_t from, std::uint64_t length) noexcept;
[[nodiscard]] bool scatter(const LocalRange* ranges, std::uint32_t count, std::uint64_t from,
                           const unsigned char* bytes, std::uint64_t length) noexcept;

}  // namespace verbatim::shm
