// SPDX-License-Identifier: BSD-2-Clause
//
// Bytes that tell where they belong: a byte depends on its seed and its position in the message, so
// that a shifted, repeated, torn or foreign piece is noticed. Not for ThreadSanitizer: these bytes
// come from other processes, whose order with us it cannot see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace verbatim::harness {

constexpr unsigned char pattern_byte(std::uint32_t seed, std::uint64_t position) {
  const std::uint32_t mixed = (static_cast<std::uint32_t>(position) ^
                               static_cast<std::uint32_t>(position >> 32) ^ (seed * 0x85EBCA6Bu)) *
                              0x9E3779B1u;
  return static_cast<unsigned char>((mixed ^ (mixed >> 15)) >> 8);
}

/// `first` is the position of bytes[0].
__attribute__((no_sanitize("thread"))) inline void fill_pattern(std::span<unsigned char> bytes,
                                                                std::uint32_t seed,
                                                                std::uint64_t first = 0) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern_byte(seed, first + i);
}

/// Index of the first byte that differs, or -1.
__attribute__((no_sanitize("thread"))) inline std::int64_t pattern_mismatch(
    std::span<const unsigned char> bytes, std::uint32_t seed, std::uint64_t first = 0) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != pattern_byte(seed, first + i)) return static_cast<std::int64_t>(i);
  }
  return -1;
}

}  // namespace verbatim::harness
