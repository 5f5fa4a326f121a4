// SPDX-License-Identifier: BSD-2-Clause
//
// The sending half of a connection: what changes with each message that goes out. Under the send lock.
// What a message needs that fits the ring stands first, and what streams and service requests need is
// apart from it.
#pragma once

#include <atomic>
#include <cstdint>

#include "providers/shm/queues/copy_choice.hpp"
#include "providers/shm/queues/ring_lines.hpp"
#include "providers/shm/wire/known_receives.hpp"

namespace verbatim::shm {

struct Requester {
  std::uint64_t sent = 0;  ///< receives of the peer that we have used up
  KnownReceives known_receives{};
  MessageRing ring{};
  std::uint64_t heard = 0;         ///< *received when a message was sent last, see ask_for_slot()
  std::uint32_t generation = 0;    ///< of our sending half; outlives resets
  bool told_fault = false;         ///< the peer was told that its half must end
  bool has_reserved_ring = false;  ///< there is room for our first message
  std::uint8_t rnr_retry = 0;
  std::uint64_t retry_ns = 0;      ///< timeout and retry_cnt as a span; ~0: for ever
  std::uint64_t peer_seen_ns = 0;  ///< now_ns() when its process was last seen alive
};

/// Long messages: the stream ring through which their bytes flow, and what the peer's service
/// thread is asked to do for them (service_requests.hpp).
struct Stream {
  std::uint64_t produced = 0;       ///< bytes ever
  std::uint64_t consumed_seen = 0;  ///< of them, the peer was seen to have taken
  /// Its service thread had to be asked to take from the stream ring.
  bool receiver_sleeps = false;
  bool receiver_stuck = false;  ///< and did not: the stream ring is of no use for now
  bool ring_was_full = false;
  /// It, or an endpoint of its own, may have more memory than an idle one: the sweep looks at it.
  std::atomic<bool> has_spare{false};
  std::uint64_t produced_then = 0;  ///< `produced` when it was last asked for spare memory
  CopyChoice copy_choice{};
  std::uint64_t ask_sequence = 0;
  std::uint64_t bounce = 0;  ///< chunk for kPlace, 0: none yet
};

}  // namespace verbatim::shm
