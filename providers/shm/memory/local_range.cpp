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

bool LocalRange::read(unsigned char* to) const noexcept {
  if (on_demand) [[unlikely]]
    return copy_from_doubtful(to, reinterpret_cast<std::uint64_t>(at), length);
  if (at != nullptr)
    std::memcpy(to, at, length);
  else
    std::memset(to, 0, length);
  return true;
}

bool LocalRange::write(const unsigned char* from) const noexcept {
  if (on_demand) [[unlikely]]
    return copy_to_doubtful(reinterpret_cast<std::uint64_t>(at), from, length);
  if (at != nullptr) std::memcpy(at, from, length);
  return true;
}

}  // namespace verbatim::shm

template bool verbatim::gather(unsigned char*, const shm::LocalRange*, std::uint32_t, std::uint64_t,
                               std::uint64_t) noexcept;
template bool verbatim::scatter(const shm::LocalRange*, std::uint32_t, std::uint64_t,
                                const unsigned char*, std::uint64_t) noexcept;
