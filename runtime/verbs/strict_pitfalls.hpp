// SPDX-License-Identifier: BSD-2-Clause
// The pitfalls of which an object has warned under VERBATIM_STRICT=1: the bits of `strict_told`.
// Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace verbatim {

enum Pitfall : std::uint32_t {
  kSmallCq = 1,
  kNoTimeout = 2,
  kNoRetry = 4,
  kLargeMtu = 8,
  kNoGrh = 16,
  kBadGidIndex = 32,
  kNoLid = 64,
  kUnacked = 128,
  kFullQueue = 256,
  kLongInline = 512,
  kUnackedAsync = 1024,
  kNoGid = 2048,
  kEmptyGidRow = 4096,
  kOtherScope = 8192,
  kManyUnacked = 16384,
  kManyUnackedAsync = 32768
};

[[nodiscard]] inline bool is_first(std::atomic<std::uint32_t>& told, Pitfall pitfall) noexcept {
  return (told.fetch_or(pitfall, std::memory_order_relaxed) & pitfall) == 0;
}

}  // namespace verbatim
