// SPDX-License-Identifier: BSD-2-Clause
// Whether a process of this host lives, by what the kernel says of it.
#pragma once

#include <cstdint>

namespace vmpi {

/// Alike for processes that see each other's numbers; 0: cannot be told.
[[nodiscard]] std::uint64_t host_identity() noexcept;
/// The kernel's start time, in its ticks; 0: cannot be told.
[[nodiscard]] std::uint64_t start_of_process(std::int32_t process) noexcept;
/// False when there is none of this number and start, or it has ended and waits to be collected.
[[nodiscard]] bool is_alive(std::int32_t process, std::uint64_t began) noexcept;

}  // namespace vmpi
