// SPDX-License-Identifier: BSD-2-Clause
// Memory that is never swapped out, within the limit that the process has for it. Any thread.
#pragma once

#include <cstdint>

namespace verbatim {

/// What a process may lock, and has locked.
struct LockLimit {
  std::uint64_t limit = ~std::uint64_t{0};  ///< bytes (RLIMIT_MEMLOCK, soft); ~0 for none
  std::uint64_t used = 0;                   ///< bytes (VmLck of /proc/self/status)
};
[[nodiscard]] LockLimit read_lock_limit() noexcept;

/// 0 or an errno: ENOMEM or EPERM, with limit, use, need and the ways to raise it in the log.
[[nodiscard]] int lock_memory(const void* base, std::uint64_t bytes, const char* what) noexcept;

}  // namespace verbatim
