// SPDX-License-Identifier: BSD-2-Clause
// The copy that the mapped floors are made of. In pieces: beyond about a megabyte the C library's
// memcpy writes past the caches, which is slow for a reader on the next core, and a floor must be
// the best that the machine can do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace verbatim::perf {

inline void copy_in_pieces(std::byte* to, const std::byte* from, std::uint64_t size) {
  constexpr std::uint64_t kPiece = 64 << 10;
  for (std::uint64_t at = 0; at < size; at += kPiece) {
    std::memcpy(to + at, from + at, size - at < kPiece ? size - at : kPiece);
  }
}

}  // namespace verbatim::perf
