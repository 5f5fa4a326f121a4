// SPDX-License-Identifier: BSD-2-Clause
// The processor's own word for "I am polling": frees the sibling thread's execution slots and
// spares a mis-speculated exit from the loop.
#pragma once

namespace verbatim {

inline void cpu_pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  // ISB, not YIELD: most cores treat YIELD as a no-op, ISB costs about what PAUSE does.
  asm volatile("isb" ::: "memory");
#else
  asm volatile("" ::: "memory");
#endif
}

}  // namespace verbatim
