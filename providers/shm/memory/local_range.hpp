// SPDX-License-Identifier: BSD-2-Clause
//
// The local side of a request: where the bytes of its SGEs lie, and copies from and to there. Any
// thread.
#pragma once

#include "providers/shm/memory/region_fast.hpp"
#include "runtime/verbs/software/scatter_gather.hpp"

namespace verbatim::shm {

/// A place of scatter_gather.hpp. (Nothing is initialised: a request has an array of them, and mostly
/// uses one.)
struct LocalRange {
  unsigned char* at;  ///< nullptr: null memory (null_memory.hpp)
  std::uint64_t length;
  bool on_demand;  ///< there may be no memory: only the kernel copies from and to it

  LocalRange part(std::uint64_t from, std::uint64_t bytes) const noexcept {
    return {at == nullptr ? nullptr : at + from, bytes, on_demand};
  }
  bool read(unsigned char* to) const noexcept;
  bool write(const unsigned char* from) const noexcept;
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

}  // namespace verbatim::shm

// The copies are made once, in local_range.cpp.
extern template bool verbatim::gather(unsigned char*, const shm::LocalRange*, std::uint32_t,
                                      std::uint64_t, std::uint64_t) noexcept;
extern template bool verbatim::scatter(const shm::LocalRange*, std::uint32_t, std::uint64_t,
                                       const unsigned char*, std::uint64_t) noexcept;
