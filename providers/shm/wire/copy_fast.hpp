// SPDX-License-Identifier: BSD-2-Clause
//
// Copies of a few bytes without a call: overlapping moves of fixed size, chosen by the length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace verbatim::shm {

template <std::size_t N>
[[gnu::always_inline]] inline void move_bytes(unsigned char* to,
                                              const unsigned char* from) noexcept {
  __builtin_memcpy(to, from, N);
}

/// Both ends of the range by moves of N bytes that may overlap. REQUIRES: N <= n <= 2 N.
template <std::size_t N>
[[gnu::always_inline]] inline void move_ends(unsigned char* to, const unsigned char* from,
                                             std::size_t n) noexcept {
  unsigned char head[N], tail[N];
  move_bytes<N>(head, from);
  move_bytes<N>(tail, from + n - N);
  move_bytes<N>(to, head);
  move_bytes<N>(to + n - N, tail);
}

/// REQUIRES: n <= 64, the ranges do not overlap.
[[gnu::always_inline]] inline void copy_small(unsigned char* to, const unsigned char* from,
                                              std::size_t n) noexcept {
  if (n == 8) [[likely]] {
    move_bytes<8>(to, from);
  } else if (n > 32) {
    move_ends<32>(to, from, n);
  } else if (n >= 16) {
    move_ends<16>(to, from, n);
  } else if (n >= 8) {
    move_ends<8>(to, from, n);
  } else if (n >= 4) {
    move_ends<4>(to, from, n);
  } else if (n >= 2) {
    move_ends<2>(to, from, n);
  } else if (n == 1) {
    *to = *from;
  }
}

/// Any length, of a message that is likely to be short.
[[gnu::always_inline]] inline void copy_some(unsigned char* to, const unsigned char* from,
                                             std::size_t n) noexcept {
  if (n <= 64) [[likely]]
    copy_small(to, from, n);
  else
    std::memcpy(to, from, n);
}

/// Any length that is given inline.
inline void copy_inline(unsigned char* to, const unsigned char* from, std::size_t n) noexcept {
  while (n > 64) {
    move_bytes<32>(to, from);
    move_bytes<32>(to + 32, from + 32);
    to += 64;
    from += 64;
    n -= 64;
  }
  copy_small(to, from, n);
}

}  // namespace verbatim::shm
