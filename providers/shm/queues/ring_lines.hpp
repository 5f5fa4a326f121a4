// SPDX-License-Identifier: BSD-2-Clause
//
// The lines of a ring of messages, as their writer knows them (message_ring.hpp). Under the send lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "providers/shm/wire/layout.hpp"

namespace verbatim::shm {

struct MessageRing {
  Slot* slots = nullptr;  ///< nullptr until our first message
  std::uint64_t mask = 0;
  std::uint32_t log = 0;
  std::uint64_t next = 0;   ///< number of the line that our next message begins with
  std::uint64_t limit = 0;  ///< it may take those below this number

  std::uint64_t begin = 0;  ///< the first line that stands in this ring, not in one before it
  std::uint64_t taken = 0;  ///< those below it the peer was seen to have taken
  std::uint64_t mixed = 0;  ///< of those below it some may hold bytes where a header would stand
  /// So often it was asked whether it is too large since something was written.
  std::uint8_t quiet_looks = 0;

  // When it was full last: since when the peer took nothing, and what it had taken.
  std::uint64_t full_since = 0;
  std::uint64_t taken_then = 0;

  /// Those before it that the peer has yet to leave.
  struct Old {
    std::uint64_t place;  ///< see namespace extent
    std::uint64_t end;    ///< left when this line is next
  };
  static constexpr std::uint32_t kMostOld = kMostRingLog - kFirstRingLog + 1;
  std::uint32_t old_count = 0;
  std::uint32_t old_capacity = 0;
  Old* old = nullptr;

  Slot& slot() const noexcept { return slots[next & mask]; }
  std::uint32_t lap_of(std::uint64_t line) const noexcept {
    return static_cast<std::uint32_t>(line >> log) + 1;
  }
  std::uint32_t lap() const noexcept { return lap_of(next); }
  /// May the next message take one line; or several, side by side, from the next on?
  bool has_line() const noexcept { return next < limit; }
  bool has_lines(std::uint32_t lines) const noexcept {
    return next + lines <= limit && (next & mask) + lines <= mask + 1;
  }
};

}  // namespace verbatim::shm
