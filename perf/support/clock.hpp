// SPDX-License-Identifier: BSD-2-Clause
// Two clocks: now_ns() for whole blocks, ticks() for single operations inside a block.
// ticks() is the processor's own counter, read without a fence as perftest does: a fence would cost
// as much as what is measured. Tick values are compared within one process only; now_ns() may be
// compared between processes of one machine.
#pragma once

#include <cstdint>
#include <ctime>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace verbatim::perf {

inline std::uint64_t now_ns() noexcept {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec);
}

inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return now_ns();
#endif
}

/// Nanoseconds of one tick, measured against CLOCK_MONOTONIC_RAW for 10 ms at the first call.
double ns_per_tick();

}  // namespace verbatim::perf
