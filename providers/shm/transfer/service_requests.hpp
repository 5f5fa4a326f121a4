// SPDX-License-Identifier: BSD-2-Clause
//
// Tier D: what a peer's service thread alone does for us, and ours for a peer: bytes that go into a
// posted receive, and word of a fault. One request at a time per QP, in the requester's record; the
// answer stands in the responder's. Nobody waits for it: the requester comes back when its queue is
// moved on. WRITEs, READs and atomics: request_ring.hpp.
#pragma once

#include <cstdint>

#include "providers/shm/transfer/reach.hpp"
#include "providers/shm/transfer/send_queue.hpp"

namespace verbatim::shm {

// Requester's side. The send lock is held. kService: under way; kDone: all of it is done.

/// Moves bytes [done, send.length) of a SEND into the receive that it uses up.
Reach ask_to_place(Qp& qp, const PendingSend& send, const LocalRange* local,
                   std::uint64_t& done) noexcept;
/// Tells the responder that it met a fault of ours: it enters the error state and raises `event`.
void tell_fault(Qp& qp, std::uint32_t event, ibv_wc_status status) noexcept;

// Responder's side: the service thread's hooks.

/// Serves the request to this QP, if there is one. REQUIRES: live.mutex.
void serve_request_of(Qp& qp) noexcept;

/// Where bytes of a region of ours lie that the requester names; nullptr: it may not. REQUIRES: an
/// odd live.service_active.
unsigned char* target_of_peer(const Qp& qp, std::uint32_t rkey, std::uint64_t iova,
                              std::uint64_t length, std::uint32_t need) noexcept;

}  // namespace verbatim::shm
