// SPDX-License-Identifier: BSD-2-Clause
// What leaves this process: messages of requests, and answers to messages. What finds no room (in
// a send queue, a bounce buffer, the memory that may be registered) waits at its peer, in order,
// and goes with a later progress().
#pragma once

#include <cstdint>

#include "mpi_shim/core/peers.hpp"

namespace vmpi {

/// Ends a request. Sends that are open keep MPI_Finalize waiting.
void complete(Request& request, int error) noexcept;
extern std::uint64_t open_sends;

/// Sends now or puts behind those that wait.
void send_message(Peer& peer, Request& send) noexcept;
/// Takes a send back that still waits. False: it has gone.
[[nodiscard]] bool take_back(Request& send) noexcept;

void answer(Peer& peer, MessageKind kind, std::uint32_t id, std::uint32_t answer_id = 0) noexcept;
void send_data_of(Peer& peer, Transfer& transfer, std::uint32_t id) noexcept;
/// False: there is no room, or the peer is gone.
[[nodiscard]] bool send_invitation(Peer& peer, const InviteHead& invite) noexcept;
/// False: not now.
[[nodiscard]] bool send_offer(Peer& peer, const RingHead& offer) noexcept;
/// The last message by the queue pair. False: not now.
[[nodiscard]] bool announce_ring(Peer& peer) noexcept;
/// A payload of the peer's was matched: in time it hears that it may send another.
void give_credits_back(Peer& peer) noexcept;
inline void give_credit_back(Peer& peer) noexcept {
  if (++peer.owed >= kCredits / 2) give_credits_back(peer);
}
/// The peer gives credits back. It cannot make any.
inline void add_credits(Peer& peer, std::uint16_t credits) noexcept {
  const std::uint32_t all = std::uint32_t{peer.credits} + credits;
  peer.credits = static_cast<std::uint16_t>(all < kCredits ? all : kCredits);
}
/// RDMA READs of what is left to be read.
void read_on(Peer& peer, Transfer& transfer) noexcept;
/// A request with a completion, so that all before it are known to be done.
void flush_queue(Peer& peer) noexcept;

/// Of streams (streams.hpp). False: there is no room.
[[nodiscard]] bool announce_window(Peer& peer) noexcept;
[[nodiscard]] bool tell_stream(Peer& peer, WrittenHead begun) noexcept;
[[nodiscard]] bool tell_streamed(Peer& peer, std::uint32_t id) noexcept;
/// RDMA WRITEs of what is left of a stream; rest_is_written() hears of their end. False: not now.
[[nodiscard]] bool write_rest(Peer& peer, Transfer& transfer) noexcept;
void mark_busy(Peer& peer) noexcept;
[[nodiscard]] bool is_anybody_busy() noexcept;
/// True: something went.
bool drain_busy() noexcept;
void forget_busy() noexcept;

}  // namespace vmpi
