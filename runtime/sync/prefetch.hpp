// SPDX-License-Identifier: BSD-2-Clause
// Asking for a cache line before it is needed. A hint: never faults, never blocks, changes no
// value.
#pragma once

namespace verbatim {

/// For reading soon.
inline void prefetch_to_read(const void* at) noexcept { __builtin_prefetch(at, 0, 3); }

}  // namespace verbatim
