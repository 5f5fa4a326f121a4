// SPDX-License-Identifier: BSD-2-Clause
//
// What an XRC initiator does with a request: it is attached to its target like a reliable
// connection, but sends over the endpoint to the queue that the request names. One request at a
// time is under way, so all are performed in the order of posting, whichever queues they go to. A
// fault of any ends the initiator and, told by it, the target (IBTA A14.5).
#pragma once

#include "providers/shm/queues/qp_kind.hpp"

namespace verbatim::shm {

/// A small SEND to a queue that has been reached before and has a receive: sent, and complete.
/// False: it must be queued. The send lock is held.
bool send_to_queue_now(Qp& qp, const SendLock& lock, const ibv_send_wr& wr) noexcept;

/// How requests are sent.
extern const QpKind kXrcInitiatorKind;

}  // namespace verbatim::shm
