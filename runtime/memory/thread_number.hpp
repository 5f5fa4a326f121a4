// SPDX-License-Identifier: BSD-2-Clause
//
// Small numbers for threads, so that an object can keep something for each in an array: dense,
// reused when a thread has ended, 0 for a thread without one. Each thread asks for its own. A
// thread gets none when too many have one, and none any more once it is ending.
//
// The number is a plain variable of the thread (no constructor, no destructor: those would need the
// C++ runtime); that a thread ends is told by a pthread key.
#pragma once

#include <cstdint>

namespace verbatim {

inline constexpr std::uint32_t kMaxThreadNumbers = 1024;

/// 0 until number_this_thread() has succeeded in this thread.
[[gnu::tls_model("initial-exec")]] inline thread_local constinit std::uint32_t thread_number = 0;

/// 1 ... kMaxThreadNumbers - 1, or 0. What was kept for an earlier thread with this number is its
/// successor's: all that the one did is seen by the other.
std::uint32_t number_this_thread() noexcept;

/// Numbers were given up to this one; what nobody has had needs no look.
[[nodiscard]] std::uint32_t highest_thread_number() noexcept;

}  // namespace verbatim
