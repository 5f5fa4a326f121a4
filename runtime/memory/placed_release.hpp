// SPDX-License-Identifier: BSD-2-Clause
// What vbt_free does, apart from the making of blocks: a program that only frees shared memory
// needs no topology. Any thread.
#pragma once

#include "runtime/memory/ledger.hpp"

namespace verbatim {

/// 0, EBUSY, EINVAL; logs nothing. Also takes what alloc_shared gave.
[[nodiscard]] int free_placed(void* address) noexcept;
/// The pages of a block that is not, or no longer, in the ledger. 0 or an errno: they stay.
[[nodiscard]] int release_pages(const PlacedBlock& block) noexcept;

}  // namespace verbatim
