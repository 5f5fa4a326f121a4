// SPDX-License-Identifier: BSD-2-Clause
//
// The blocks that vbt_alloc gave out and vbt_free takes back, and how many memory regions of any
// provider cover each: what is registered is not freed. Any thread; O(log blocks) for regions, and
// one load while there is no block. After a fork the child has the blocks, and the regions that
// kept them, as its parent had them.
#pragma once

#include <cstdint>

namespace verbatim {

struct PlacedBlock {
  unsigned char* base = nullptr;
  std::uint64_t bytes = 0;
  bool shared = false;
  bool locked = false;
  std::uint32_t holds = 0;
  std::uint64_t serial = 0;  ///< later blocks have higher ones
};

/// 0 or an errno.
[[nodiscard]] int ledger_add(const PlacedBlock& block) noexcept;
/// Takes out the block that starts at `address`. 0; EBUSY: regions cover it, it stays; EINVAL: no
/// block starts there.
[[nodiscard]] int ledger_take(const void* address, PlacedBlock& block) noexcept;
/// Regions that cover any of the block that starts at `address`; 0 also when none does.
[[nodiscard]] std::uint32_t ledger_regions(const void* address) noexcept;
/// Puts back what ledger_take took out.
void ledger_return(const PlacedBlock& block) noexcept;

/// A region covers [address, address + length). Answers what ledger_drop needs to know.
[[nodiscard]] std::uint64_t ledger_hold(const void* address, std::uint64_t length) noexcept;
/// It no longer does. `serial`: which of the blocks there are as old as the region.
void ledger_drop(const void* address, std::uint64_t length, std::uint64_t serial) noexcept;

}  // namespace verbatim
