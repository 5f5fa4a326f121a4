// SPDX-License-Identifier: BSD-2-Clause
// What valgrind's memcheck cannot see: bytes that a device, the kernel or another process stores.
// Without its header at build time, and outside of valgrind, this does nothing.
// Any thread. Spec: <valgrind/memcheck.h>, client requests.
#pragma once

#include <cstddef>

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#endif

namespace verbatim {

/// Tells memcheck that the bytes count as written from here on, as far as they are this program's.
inline void expect_written_by_others([[maybe_unused]] void* memory,
                                     [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef VALGRIND_MAKE_MEM_DEFINED_IF_ADDRESSABLE
  (void)VALGRIND_MAKE_MEM_DEFINED_IF_ADDRESSABLE(memory, bytes);
#endif
}

}  // namespace verbatim
