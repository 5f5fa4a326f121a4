// SPDX-License-Identifier: BSD-2-Clause
//
// Tier A (reach.hpp): memory of a peer that lies in our own address space.
#pragma once

#include "providers/shm/windows/authorize.hpp"

namespace verbatim::shm {

/// Where the peer's bytes lie in our address space, or nullptr: not mapped, or not allowed.
inline unsigned char* mapped_bytes(const Qp& qp, std::uint32_t rkey, std::uint64_t address,
                                   std::uint64_t bytes, std::uint32_t need) noexcept {
  Region region;
  std::uint64_t offset;
  if (authorize_remote(qp, {rkey, need, address, bytes}, region, offset) != KeyFault::kNone)
    return nullptr;
  if (qp.link.self)
    return (region.access & IBV_ACCESS_ON_DEMAND) != 0
               ? nullptr
               : reinterpret_cast<unsigned char*>(region.address + offset);
  const std::uint32_t number = region.arena - 1;
  if (number >= kMaxArenas) return nullptr;
  const Arena& arena = qp.link.peer->arenas[number];
  unsigned char* base = arena.base.load(std::memory_order_acquire);
  const std::uint64_t at = region.arena_offset + offset;
  // The record's word for where the region lies in the arena is the peer's: hold it against our
  // mapping.
  if (base == nullptr || at < offset || at > arena.size || bytes > arena.size - at) return nullptr;
  return base + at;
}

}  // namespace verbatim::shm
