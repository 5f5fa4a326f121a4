// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/null_memory.hpp"

namespace verbatim::shm {
namespace {

// Both cost pages when they are touched, the first none of its own.
alignas(kCacheLine) constinit unsigned char zeros[kNullBytes] = {};
alignas(kCacheLine) constinit unsigned char sink[kNullBytes] = {};

}  // namespace

const unsigned char* null_source() noexcept { return zeros; }

unsigned char* null_sink() noexcept { return sink; }

bool names_null_memory(const RegionRecord* table, std::uint32_t capacity, std::uint32_t pd,
                       std::uint32_t key) noexcept {
  Region region;
  return find_region(table, capacity, key, region) && is_null_memory(region, pd);
}

}  // namespace verbatim::shm
