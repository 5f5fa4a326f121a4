// SPDX-License-Identifier: BSD-2-Clause
//
// ibv_alloc_null_mr: a local key under which every address reads as zero and forgets what is
// written. A range of it has no place in memory (LocalRange::at is nullptr); where a copy needs
// one, these stand in. Any thread.
#pragma once

#include <cstdint>

#include "providers/shm/memory/region_fast.hpp"

namespace verbatim::shm {

inline constexpr std::uint64_t kNullBytes = std::uint64_t{1} << 20;

/// kNullBytes of zeros that nobody writes.
const unsigned char* null_source() noexcept;
/// kNullBytes that nobody reads.
unsigned char* null_sink() noexcept;

inline bool is_null_memory(const Region& region, std::uint32_t pd) noexcept {
  return holder::is_null_memory(region.pd, pd);
}

/// Does `lkey` name null memory of this holder?
[[gnu::cold, gnu::noinline]] bool names_null_memory(const KeyHolder& keys,
                                                    std::uint32_t lkey) noexcept;

}  // namespace verbatim::shm
