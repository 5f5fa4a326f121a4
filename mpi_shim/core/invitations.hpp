// SPDX-License-Identifier: BSD-2-Clause
// A receive of a long message that is posted before its message invites the sender to write it by
// RDMA: then a receiver that computes meanwhile stops nobody, and one message less is needed.
//
// An invitation counts only where it is certain which message the receive will match. The receiver
// invites when no wildcard and no other receive of this source and tag was posted before, and says
// how many messages of the sender it had taken. The sender drops it when it has sent more, and with
// the first message of that tag that does not use it: that message matches the receive.
#pragma once

#include <cstdint>

#include "mpi_shim/core/peers.hpp"

namespace vmpi {

/// A receive that was posted just now.
void consider_inviting(Request& receive) noexcept;
/// Another message has matched an invited receive.
void withdraw_invitation(Request& receive) noexcept;
/// Receives that are invited, whose transfers nobody waits for.
extern std::uint64_t invited;

void take_invitation(Peer& peer, const InviteHead& invite) noexcept;
/// The one for such a message, taken out of the peer's; false: there is none.
[[nodiscard]] bool use_invitation(Peer& peer, std::uint32_t context, std::int32_t tag,
                                  Invitation& out) noexcept;
/// The peer wants one back; what was written before is heard before.
void drop_invitation(Peer& peer, std::uint32_t id) noexcept;

/// A message has been written to where its receive wants it.
void take_written(Peer& peer, const WrittenHead& written) noexcept;
/// It comes in pieces from now on.
void take_stream(Peer& peer, const WrittenHead& begun) noexcept;
/// The peer will not write to this receive: it ends as cancelled, with its `error`, if nothing has
/// matched it.
void take_revoked(Peer& peer, std::uint32_t id) noexcept;
/// True: the receive is invited; it ends when the peer has answered.
[[nodiscard]] bool revoke(Request& receive) noexcept;

}  // namespace vmpi
