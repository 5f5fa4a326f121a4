// SPDX-License-Identifier: BSD-2-Clause
//
// The bytes that drive one round of a target: a target reads from it what a stranger does next.
// After the last byte everything reads as zero, so any bytes are a whole input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>

namespace verbatim::fuzz {

using Bytes = std::span<const unsigned char>;

/// One round. Each target's program defines it; whatever it finds ends the process.
void run_one(Bytes input);

class Input {
 public:
  explicit Input(Bytes bytes) : left_(bytes) {}

  bool empty() const { return left_.empty(); }

  template <class T = std::uint8_t>
  T take() {
    T value{};
    const std::size_t n = left_.size() < sizeof value ? left_.size() : sizeof value;
    if (n != 0) std::memcpy(&value, left_.data(), n);
    left_ = left_.subspan(n);
    return value;
  }
  /// Below `bound`.
  std::uint32_t below(std::uint32_t bound) {
    return (bound > 256 ? take<std::uint16_t>() : take<std::uint8_t>()) % bound;
  }
  bool flag() { return (take() & 1) != 0; }
  /// A number as liars like them: at an edge of something, or any.
  std::uint64_t number() {
    const std::uint8_t kind = take();
    const std::uint64_t small = take<std::uint16_t>();
    switch (kind % 8) {
      case 0:
        return small;
      case 1:
        return std::uint64_t{0} - small;
      case 2:
        return std::uint64_t{1} << (small % 64);
      case 3:
        return (std::uint64_t{1} << (small % 64)) - 1;
      case 4:
        return small * 64;
      case 5:
        return small << 16;
      case 6:
        return take<std::uint64_t>();
      default:
        return small % 16;
    }
  }

 private:
  Bytes left_;
};

}  // namespace verbatim::fuzz

/// What must hold whatever a stranger does. Not an assertion of the test framework: libFuzzer keeps
/// the input of a process that aborts.
#define VBT_HOLDS(condition)                                                              \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)
