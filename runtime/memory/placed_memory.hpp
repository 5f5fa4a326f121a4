// SPDX-License-Identifier: BSD-2-Clause
// What vbt_alloc does (verbatim/memory.h has the contract). Any thread.
#pragma once

#include <verbatim/memory.h>

#include "runtime/memory/spread_parts.hpp"

namespace verbatim {

/// nullptr with `error` set (logged). `device` is the name of attr.device, or null. `parts`, if not
/// null, says what lies where, of memory that was spread.
[[nodiscard]] void* alloc_placed(const vbt_alloc_attr& attr, const char* device,
                                 vbt_alloc_facts& facts, int& error,
                                 SpreadParts* parts = nullptr) noexcept;

}  // namespace verbatim
