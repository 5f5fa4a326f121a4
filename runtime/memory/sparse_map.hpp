// SPDX-License-Identifier: BSD-2-Clause
//
// Maps of which most is never touched. A process that locks all of its memory, present and to come
// (mlockall(2) with MCL_FUTURE), has each new map filled with pages as it is made, and every byte
// of it counted against 'ulimit -l'. These are made past that: only what is touched costs memory,
// and that stays locked. Any thread.
#pragma once

#include <cstdint>

namespace verbatim {

/// mmap(2) of `bytes` from the beginning of `fd`, or of zeros for -1 and MAP_ANONYMOUS in `flags`.
/// `at`: nullptr, or a range of the caller's own of that size, whose place the map takes.
/// MAP_FAILED: errno says why.
[[nodiscard]] void* map_sparse(void* at, std::uint64_t bytes, int protection, int flags,
                               int fd) noexcept;

}  // namespace verbatim
