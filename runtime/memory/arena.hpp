// SPDX-License-Identifier: BSD-2-Clause
//
// Arenas: user memory that peers may map. Each is a memfd of its own. An allocation of a MiB or
// more has an arena to itself; smaller ones are packed by pages into arenas of 4 MiB. What peers
// get is a whole arena: that is the granularity of sharing, and verbatim/memory.h says so.
//
// An arena reaches a peer only after arena_share, that is after a registration with remote access.
// A peer may then hold its mapping for ever, so the number of an arena that was given away never
// means another file: when its user frees it, the memory goes back to the system and the empty file
// waits for the next allocation.
//
// Any thread. Lookups take a spin lock for O(log n) steps; alloc_shared and free_shared take a
// mutex and enter the kernel. After a fork the child keeps what it inherited but neither packs into
// it nor punches it: the parent's bytes are its parent's. Spec: memfd_create(2), F_ADD_SEALS in
// fcntl(2).
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/unique_fd.hpp"
#include "runtime/memory/page_placement.hpp"

namespace verbatim {

inline constexpr std::uint32_t kMaxArenaNumbers = 1024;
/// The number of an arena that came after all numbers were given away: it works, but peers cannot
/// map it.
inline constexpr std::uint32_t kNoArenaNumber = ~std::uint32_t{0};

/// Where a range of user memory lies.
struct ArenaView {
  std::uint32_t number = kNoArenaNumber;
  std::uint64_t offset = 0;  ///< of the range's first byte, in the arena
  std::uint64_t size = 0;    ///< of the whole arena
  int fd = -1;               ///< the arena's own; never closed while one of its allocations lives
};

/// Page-aligned zeroed memory, backed: a store to it never raises SIGBUS. nullptr with `error` set
/// (logged).
[[nodiscard]] void* alloc_shared(std::size_t bytes, int& error) noexcept;
/// Allocates shared memory in an arena of its own, at a multiple of `alignment` and placed as
/// `plan` says, before the pages exist. `placed` is what place_pages answered.
[[nodiscard]] void* alloc_shared_placed(std::size_t bytes, std::size_t alignment,
                                        const PagePlan& plan, int& placed, int& error) noexcept;
/// Lets a forked child look ranges up although nothing was allocated before the fork. 0 or ENOMEM.
[[nodiscard]] int arena_prepare_for_forks() noexcept;

/// 0; EBUSY while a registration covers any of it; EINVAL for what alloc_shared did not return.
[[nodiscard]] int free_shared(void* address) noexcept;

/// The arena that holds all of [address, address + length); false when none does.
[[nodiscard]] bool arena_of(const void* address, std::uint64_t length, ArenaView& view) noexcept;
/// Finds the arena of a range and counts a registration of it: the range's allocations cannot be
/// freed until arena_drop with the same range.
[[nodiscard]] bool arena_hold(const void* address, std::uint64_t length, ArenaView& view) noexcept;
void arena_drop(const void* address, std::uint64_t length) noexcept;

/// Permits peers to map the arena: a registration with remote access covers part of it.
void arena_share(std::uint32_t number) noexcept;
/// A descriptor to hand to a peer. EACCES when the arena is not shared, ENOENT when there is none.
[[nodiscard]] int arena_give(std::uint32_t number, UniqueFd& fd, std::uint64_t& size) noexcept;
/// Where the arena lies in this process (loopback), or nullptr. Counts as given away: `number`
/// stays its name.
[[nodiscard]] unsigned char* arena_base(std::uint32_t number, std::uint64_t& size) noexcept;

}  // namespace verbatim
