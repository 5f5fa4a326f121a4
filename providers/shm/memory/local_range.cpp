// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/memory/local_range.hpp"

#include <cstring>

#include "providers/shm/memory/null_memory.hpp"
#include "runtime/memory/address_space.hpp"

namespace verbatim::shm {

bool find_unusual_range(const KeyHolder& keys, std::uint32_t lkey, std::uint64_t address,
                        std::uint64_t bytes, std::uint32_t need, LocalRange& out) noexcept {
  const KeyHolder on_demand{keys.regions, keys.capacity, holder::kOnDemand | keys.pd};
  out.on_demand = find_local_bytes(on_demand, lkey, address, bytes, need, out.at);
  return out.on_demand || names_null_memory(keys, lkey);
}

bool gather(unsigned char* to, const LocalRange* ranges, std::uint32_t count, std::uint64_t from,
            std::uint64_t length) noexcept {
  return walk(ranges, count, from, length,
              [to](const LocalRange& part, std::uint64_t distance) noexcept {
                if (part.on_demand) [[unlikely]]
                  return copy_from_doubtful(to + distance, reinterpret_cast<std::uint64_t>(part.at),
                                            part.length);
                if (part.at != nullptr)
                  std::memcpy(to + distance, part.at, part.length);
                else
                  std::memset(to + distance, 0, part.length);
                return true;
              });
}

bool scatter(const LocalRange* ranges, std::uint32_t count, std::uint64_t from,
             const unsigned char* bytes, std::uint64_t length) noexcept {
  return walk(ranges, count, from, length,
              [bytes](const LocalRange& part, std::uint64_t distance) noexcept {
                if (part.on_demand) [[unlikely]]
                  return copy_to_doubtful(reinterpret_cast<std::uint64_t>(part.at),
                                          bytes + distance, part.length);
                if (part.at != nullptr) std::memcpy(part.at, bytes + distance, part.length);
                return true;
              });
}

}  // namespace verbatim::shm
