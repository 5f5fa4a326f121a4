// SPDX-License-Identifier: BSD-2-Clause
//
// The ring in which our messages to a peer lie, on the sending side: lines of the segment, of which
// a message takes as many as it needs, side by side (layout.hpp). It begins with a few, since those
// that two cores have just exchanged are the fastest, and goes on in a larger one when the peer does
// not take them as fast as they come: so a connection has the memory of what is under way, however
// many receives are posted.
//
// A receiver that waits looks at the line behind the last message. What stood there a lap ago may
// have been a part of a longer message, and look like anything: before a message is published the
// line behind it is made to look like none. `limit` says how far that is done, and that there is
// room; it is all that a short message asks.
//
// Under the send lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "providers/shm/wire/layout.hpp"

namespace verbatim::shm {

struct Qp;
class OwnSegment;

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
    std::uint64_t place;  ///< see namespace window
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

/// Sees that the next message may take so many lines, without more memory. False: the peer has not
/// taken what is in the way.
[[gnu::noinline]] bool look_for_lines(Qp& qp, std::uint32_t lines) noexcept;
enum class Lines : std::uint8_t {
  kThere,
  kSoon,  ///< the peer is taking messages just now
  kNone   ///< there is no memory for a larger ring
};
/// The same in a larger ring if that must be.
[[gnu::cold, gnu::noinline]] Lines make_lines(Qp& qp, std::uint32_t lines) noexcept;
/// The ring for the first message. False: there is no memory.
bool make_ring(Qp& qp) noexcept;
/// Sees that there will be. False: there is none left.
bool reserve_ring(Qp& qp) noexcept;
/// Gives all of it back to `segment`, also what was reserved; and forgets it.
void give_ring_back(Qp& qp, OwnSegment& segment) noexcept;
void forget_ring(Qp& qp) noexcept;

/// Gives back what is not used any more, and goes on in a ring of the first size when nothing was
/// written for some looks. True: there is nothing to give back.
bool trim_ring(Qp& qp) noexcept;

}  // namespace verbatim::shm
