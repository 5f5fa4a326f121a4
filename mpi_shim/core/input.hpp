// SPDX-License-Identifier: BSD-2-Clause
// What comes to this process, and what receives do with it.
#pragma once

#include <cstdint>

#include "mpi_shim/core/matching.hpp"
#include "mpi_shim/core/peers.hpp"

namespace vmpi {

/// A message of `bytes` bytes from the peer, in a receive buffer.
void take_message(Peer& peer, const unsigned char* message, std::size_t bytes) noexcept;
/// A receive has matched a message that lay here.
void consume(Request& receive, const Unexpected& message) noexcept;
/// Whether the rank that a message names in the communicator is its sender's. If not, the sender is
/// failed.
[[nodiscard]] bool is_true(const Comm& comm, const Envelope& message,
                           std::uint32_t sender) noexcept;
/// Packed data to where the receive wants it.
void deliver(Request& receive, const unsigned char* payload, std::size_t bytes) noexcept;
/// Messages that nobody will ask for any more: their senders are not kept waiting. Of a communicator:
void turn_away(const Comm& comm, Plane plane) noexcept;
/// Of collectives that a dead rank has a part in.
void turn_away_hopeless() noexcept;
void finish_read(Peer& peer, Transfer& transfer) noexcept;

/// Payloads that this process may still send itself without a receive.
extern std::uint16_t own_credits;
/// Sends of this process to itself that wait for a receive.
extern std::uint64_t own_waiting;

}  // namespace vmpi
