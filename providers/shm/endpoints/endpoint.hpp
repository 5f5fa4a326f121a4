// SPDX-License-Identifier: BSD-2-Clause
//
// Endpoints: how a UD queue pair, which is connected to nobody, reaches everybody.
//
// For each destination that it sends to, a UD queue pair has an endpoint: an unnamed queue pair of
// ours, connected to another unnamed one in the destination's process, which takes its receives
// from the destination's store. An endpoint is so a connection to a shared receive queue, and all
// of that machinery serves it; applications never see it, its completions carry the names of the
// two they know.
//
//   sender's process                          receiver's process
//   UD queue pair U                           UD queue pair R, receives in its store
//     endpoint S  --- rings --->                endpoint L, receives from R's store
//
// S is made by the first datagram to R and stands in its process's list of endpoints, where R's
// service thread finds it when S asks to connect (the service doorbell of R). It makes L, puts it
// into R's list of endpoints, and S, which looks there, finds it. From then on nobody but U and the
// pollers of R's receive CQ is needed.
//
// An XRC initiator reaches the shared receive queues of its target's domain over endpoints too, one
// for each (xrc_send.hpp): U is the initiator then, R the queue (xrc_queue.hpp). Those are
// reliable: nothing is lost, and a fault ends U.
//
// Who guards what: U's endpoints, U's send lock. R's endpoints, live.mutex. This process's list, a
// lock of its own.
#pragma once

#include <cstdint>

#include "providers/shm/queues/qp.hpp"
#include "providers/shm/queues/ud_role.hpp"

namespace verbatim::shm {

/// An endpoint as it stands in records: QpRecord::endpoint_link.
inline std::uint32_t link_to(const Qp* endpoint) noexcept {
  return endpoint == nullptr ? 0 : endpoint->index + 1;
}

/// The endpoint of `from` to the queue pair, or XRC queue, `qpn`; nullptr: none yet. `from`'s send
/// lock is held.
Qp* find_endpoint(Qp& from, std::uint32_t qpn) noexcept;
/// Makes it. nullptr: no memory, no numbers.
Qp* open_endpoint(Qp& from, std::uint32_t qpn) noexcept;
/// kNothing: the endpoint leads there; kPeer: not yet; kMemory: we have none for its ring;
/// kReceive: it leads nowhere (any more).
Wait reach_destination(Qp& endpoint) noexcept;
/// The destination of `endpoint` is gone: the next datagram to this number opens another. Of UD,
/// those that are lost go with it.
void abandon_endpoint(Qp& from, Qp& endpoint) noexcept;
/// The same for all endpoints of a UD queue pair that lead nowhere any more. No lock after
/// live.mutex is held.
void abandon_lost_endpoints(Qp& from) noexcept;
/// For others that list themselves with the endpoints that leave.
void list_outgoing(Qp& endpoint) noexcept;
/// All of them (reset, destroy). No lock is held.
void close_outgoing(Qp& from) noexcept;

/// Takes an endpoint out of this process's list (it is given back), or all of them (the process
/// leaves the fabric).
void forget_outgoing(Qp& endpoint) noexcept;
void forget_all_outgoing() noexcept;
/// In a forked child: the endpoints, and whoever had their lock, were the parent's.
void forget_endpoints_of_parent() noexcept;

/// Makes our halves of the endpoints that ask to connect to `to`, a few at a time: for the others
/// the service thread comes back. Service thread; live.mutex is held.
void accept_endpoints(Qp& to) noexcept;
/// Whether it has been told to since this was asked last. Service thread.
bool were_endpoints_left() noexcept;
/// Ends the endpoints that lead to `to`. No lock is held.
void close_incoming(Qp& to) noexcept;
/// No more is accepted from any (error state). No lock after the send lock is held.
void stop_accepting(Qp& to) noexcept;
/// Ends those endpoints that lead to `to` whose senders are gone and that are empty. Service
/// thread; live.mutex is held.
void reap_endpoints(Qp& to) noexcept;
/// The same for all that a dead process has endpoints to. What it had sent is received first: until
/// then they stay, and this is called again (ServiceHooks::dead_stay). Service thread; live.mutex
/// is held.
void reap_endpoints_of_dead() noexcept;

}  // namespace verbatim::shm
