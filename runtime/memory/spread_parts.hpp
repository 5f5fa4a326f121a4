// SPDX-License-Identifier: BSD-2-Clause
//
// Memory in adjacent parts of like size, one on each node (VBT_WHERE_SPREAD): where they begin.
// Whoever places the pages and whoever asks for them afterwards reckon alike.
#pragma once

#include <cstdint>

namespace verbatim {

inline constexpr std::uint32_t kMostParts = 1024;

/// Where part `i` of `count` begins, and the last one ends; at a multiple of `granule` but for
/// that.
inline std::uint64_t part_begin(std::uint64_t bytes, std::uint64_t granule, std::uint64_t i,
                                std::uint64_t count) noexcept {
  const std::uint64_t granules = (bytes + granule - 1) / granule;
  const std::uint64_t begin = granules * i / count * granule;
  return begin < bytes ? begin : bytes;
}

/// The parts of a block; none, when it was not spread.
struct SpreadParts {
  std::uint64_t bytes = 0;
  std::uint64_t granule = 0;
  std::uint32_t count = 0;
  std::uint32_t nodes[kMostParts];  ///< the kernel's numbers

  [[nodiscard]] std::uint64_t begin(std::uint32_t i) const noexcept {
    return part_begin(bytes, granule, i, count);
  }
};

}  // namespace verbatim
