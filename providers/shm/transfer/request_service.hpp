// SPDX-License-Identifier: BSD-2-Clause
//
// Tier D, responder's side: the rings of requests that peers have put up (request_ring.hpp) are
// served by the service thread, which stays while more come, and by any thread of the program that
// polls a completion queue, whichever is there first. live.mutex makes them one after the other, so
// requests of a queue pair are performed once and in their order.
#pragma once

#include "providers/shm/queues/qp.hpp"

namespace verbatim::shm {

/// Serves rings that have rung, and stays while more comes from them. True: it is the turn of
/// others, and there may be more. On the service thread.
bool attend_requests() noexcept;
/// In a forked child, whose service thread is another.
void forget_attended() noexcept;
/// Serves what waits in rings that have rung, unless somebody is at it; then `cq` looks again. On
/// a thread that polls it, without its lock.
void serve_requests_by_poll(Cq& cq) noexcept;
/// A peer has told of requests, and nobody has looked since.
bool are_requests_rung() noexcept;
/// Some of what waits in the ring of the peer of `qp`. REQUIRES: live.mutex.
void serve_requests(Qp& qp) noexcept;

/// The memory of what was answered. REQUIRES: nobody serves `qp` any more.
void give_answers_back(Qp& qp) noexcept;

}  // namespace verbatim::shm
