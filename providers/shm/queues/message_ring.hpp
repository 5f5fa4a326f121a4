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

#include "providers/shm/queues/qp.hpp"

namespace verbatim::shm {

class OwnSegment;

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
