// SPDX-License-Identifier: BSD-2-Clause
// What a polling loop does between two looks at a line that another core writes. A tight loop is
// often not the fastest: each look takes the line away from its writer. Which of the four wins
// differs between processors, and on one processor between minutes.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace verbatim::perf {

enum class Pace : std::uint32_t { kTight, kPause, kReadModifyWrite, kFence };
inline constexpr Pace kAllPaces[] = {Pace::kTight, Pace::kPause, Pace::kReadModifyWrite,
                                     Pace::kFence};
inline constexpr const char* name_of(Pace pace) noexcept {
  switch (pace) {
    case Pace::kTight:
      return "tight";
    case Pace::kPause:
      return "pause";
    case Pace::kReadModifyWrite:
      return "rmw";
    case Pace::kFence:
      return "lfence";
  }
  return "?";
}

inline void cpu_relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

template <Pace kPace>
inline void pace_once() noexcept {
  if constexpr (kPace == Pace::kPause) {
    cpu_relax();
  } else if constexpr (kPace == Pace::kReadModifyWrite) {
    // On a private line: it is the drain of the store buffer that paces, not the line.
    std::atomic<std::uint32_t> own{0};
    own.fetch_add(1, std::memory_order_seq_cst);
    asm volatile("" : : "r"(&own) : "memory");
  } else if constexpr (kPace == Pace::kFence) {
#if defined(__x86_64__)
    __builtin_ia32_lfence();
#elif defined(__aarch64__)
    asm volatile("dmb ishld" ::: "memory");
#endif
  }
}

/// Calls `body(std::integral_constant<Pace, p>)` for the run-time value `pace`.
template <class Body>
inline void with_pace(Pace pace, Body&& body) {
  switch (pace) {
    case Pace::kTight:
      return body(std::integral_constant<Pace, Pace::kTight>{});
    case Pace::kPause:
      return body(std::integral_constant<Pace, Pace::kPause>{});
    case Pace::kReadModifyWrite:
      return body(std::integral_constant<Pace, Pace::kReadModifyWrite>{});
    case Pace::kFence:
      return body(std::integral_constant<Pace, Pace::kFence>{});
  }
}

}  // namespace verbatim::perf
