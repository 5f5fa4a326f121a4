// SPDX-License-Identifier: BSD-2-Clause
//
// The process at the other end of a connection.
#pragma once

#include "providers/shm/queues/qp.hpp"

namespace verbatim::shm {

/// The process that has the other half of the connection, found once; nullptr while it is not
/// known. The caller holds the send lock, the receive CQ's lock (of a QP with a session) or
/// live.mutex (of one that is watched).
Peer* find_connected_peer(Qp& qp) noexcept;
/// The record of the QP that `qp` is to talk to, if it is in that process and names ours.
const QpRecord* record_in(const Peer& peer, const Qp& qp) noexcept;
/// The other half is nobody's any more.
void forget_peer(Qp& qp) noexcept;
/// Has the peer's service thread look at the QP: at its request, and at what lies in our stream
/// ring.
void wake_service_of_peer(Qp& qp) noexcept;

}  // namespace verbatim::shm
