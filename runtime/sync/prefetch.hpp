// SPDX-License-Identifier: BSD-2-Clause
// Asking for a cache line before it is needed. A hint: never faults, never blocks, changes no
// value.
//
// In the processor's own words: GCC takes a function that does nothing but __builtin_prefetch for
// one without effect, and drops its calls; and of a prefetch for writing it makes, for the baseline
// of x86-64, one for reading.
#pragma once

namespace verbatim {

/// Asks for a line that is read soon.
inline void prefetch_to_read(const void* at) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetcht0 %0" : : "m"(*static_cast<const unsigned char*>(at)));
#elif defined(__aarch64__)
  asm volatile("prfm pldl1keep, %0" : : "Q"(*static_cast<const unsigned char*>(at)));
#else
  __builtin_prefetch(at, 0, 3);
#endif
}

/// Asks for a line that is written soon: it comes to this core alone. Processors that do not know
/// the instruction pass over it.
inline void prefetch_to_write(const void* at) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const unsigned char*>(at)));
#elif defined(__aarch64__)
  asm volatile("prfm pstl1keep, %0" : : "Q"(*static_cast<const unsigned char*>(at)));
#else
  __builtin_prefetch(at, 1, 3);
#endif
}

}  // namespace verbatim
