// SPDX-License-Identifier: BSD-2-Clause
//
// Processes are killed at seeded random moments of what they do, over and over beside the same
// survivor. It sees each request end, in order and in time, keeps nothing of the dead, and meets
// the next one at once.
//
// A round that failed is named in the failure; VBT_DEATH=<seed>:<round>[:<times>] repeats it.
#pragma once

#include <cstdint>

namespace verbatim::death {

inline constexpr bool kSanitized =
#ifdef VBT_UNDER_SANITIZER
    true;
#else
    false;
#endif

/// Rounds [0, count) of a seed, up to the first that fails; then nothing may be left of them.
void run_rounds(std::uint64_t seed, std::uint32_t count);
/// One round so many times.
void repeat_round(std::uint64_t seed, std::uint32_t round, std::uint32_t times);

}  // namespace verbatim::death
