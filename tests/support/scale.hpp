// SPDX-License-Identifier: BSD-2-Clause
//
// How many rounds tests play: all that they name, or fewer on machines that are slower by an order.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>

#include "tests/support/environment_number.hpp"

namespace verbatim::harness {

/// The environment variable VERBATIM_TEST_SCALE, in percent.
inline std::int32_t scale_of_environment() {
  return number_of_environment("VERBATIM_TEST_SCALE", 100, 1, 100);
}

inline const std::int32_t kScalePercent = scale_of_environment();

/// `percent` of `rounds`, but not fewer than `least`: what the sentence must see to mean what it
/// says, such as a queue that has gone round.
/// REQUIRES: least <= rounds.
template <std::unsigned_integral Count>
constexpr Count scaled_rounds(Count rounds, Count least, std::int32_t percent) {
  const std::uint64_t whole = rounds;
  const auto part = static_cast<Count>(whole * static_cast<std::uint64_t>(percent) / 100);
  return std::max(part, least);
}
template <std::unsigned_integral Count>
Count scaled_rounds(Count rounds, Count least) {
  return scaled_rounds(rounds, least, kScalePercent);
}

}  // namespace verbatim::harness
