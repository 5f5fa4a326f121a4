// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/memory/null_memory.hpp"

namespace verbatim::shm {
namespace {

// Both cost pages when they are touched, the first none of its own.
alignas(kCacheLine) constinit unsigned char zeros[kNullBytes] = {};
alignas(kCacheLine) constinit unsigned char sink[kNullBytes] = {};

}  // namespace

const unsigned char* null_source() noexcept { return zeros; }

unsigned char* null_sink() noexcept { return sink; }

bool names_null_memory(const KeyHolder& keys, std::uint32_t lkey) noexcept {
  Region region;
  return find_region(keys.regions, keys.capacity, lkey, region) && is_null_memory(region, keys.pd);
}

}  // namespace verbatim::shm
