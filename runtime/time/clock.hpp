// SPDX-License-Identifier: BSD-2-Clause
// The time that only goes forward, in nanoseconds. Any thread; about 20 ns through the vDSO: for
// control code and timeouts, not for each message.
#pragma once

#include <cstdint>
#include <ctime>

namespace verbatim {

[[nodiscard]] inline std::uint64_t now_ns() noexcept {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

/// Since 1970, as file systems and people count; it may jump.
[[nodiscard]] inline std::uint64_t wall_clock_ns() noexcept {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace verbatim
