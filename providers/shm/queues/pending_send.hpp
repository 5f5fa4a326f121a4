// SPDX-License-Identifier: BSD-2-Clause
//
// What waits in a send queue: a request in its own words, and how far the first of them has come.
// Both are guarded by their queue pair's send lock.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "providers/shm/wire/layout.hpp"

namespace verbatim::shm {

/// A send work request that could not be performed at once, in its own words.
struct PendingSend {
  std::uint64_t wr_id;
  std::uint64_t length;
  std::uint64_t remote_address;
  std::uint64_t compare_add;
  std::uint64_t swap;
  std::uint32_t rkey;
  std::uint32_t immediate;
  std::uint32_t sq_index;
  std::uint16_t opcode;  ///< ibv_wr_opcode
  std::uint16_t flags;   ///< ibv_send_flags
  std::uint16_t num_sge;
  /// Its bytes were given inline: they lie in the queue's inline store, sge[0] points there.
  bool is_inline;
  // UD:
  bool is_global;           ///< with a routing header
  bool is_lost : 1;         ///< nobody is behind the address
  bool is_foreign : 1;      ///< the address handle is of another protection domain
  bool to_group;            ///< remote_address and swap are the halves of its GID
  std::uint16_t path_high;  ///< see path(): in two parts for the room that there is
  std::uint32_t path_low;
  std::uint32_t srqn;  ///< XRC: the queue that it is for
  ibv_mw* window;      ///< BIND_MW; its address, length and rights are in the remote ones' words
  ibv_mr* region;

  /// UD: a word of namespace path, for who receives it.
  std::uint64_t path() const noexcept { return std::uint64_t{path_high} << 32 | path_low; }
  void set_path(std::uint64_t word) noexcept {
    path_high = static_cast<std::uint16_t>(word >> 32);
    path_low = static_cast<std::uint32_t>(word);
  }

  /// Everything. Member by member: of `= {}` GCC makes `rep stos`, which takes longer to start
  /// than a READ takes.
  void clear() noexcept {
    wr_id = length = remote_address = compare_add = swap = 0;
    rkey = immediate = sq_index = 0;
    opcode = flags = num_sge = 0;
    is_inline = is_global = is_lost = is_foreign = to_group = false;
    path_high = 0;
    path_low = srqn = 0;
    window = nullptr;
    region = nullptr;
  }
};
static_assert(sizeof(PendingSend) == 88, "a member more is one more to clear");

/// Why the head of the send queue waits, and how far it has come.
enum class Wait : std::uint8_t {
  kNothing,
  kPeer,     ///< not met yet, not in RTR, or gone
  kReceive,  ///< it has no receive posted
  kStream,   ///< it has not taken the bytes in the stream ring, or the lines of the ring
  kArena,    ///< its memory is being mapped
  kService,  ///< its service thread is doing the copy
  kQuiet,    ///< it may still be copying through a window that is closed
  kMemory    ///< for nothing: our segment has no memory left for what the request needs
};

/// A wait for the peer, or our service thread, to end the copy that it was in the middle of.
struct QuietWait {
  const std::atomic<std::uint64_t>* word = nullptr;  ///< the peer's
  std::uint64_t seen = 0;
  std::uint64_t service = 0;
  bool started = false;
};

struct Progress {
  Wait wait = Wait::kNothing;
  bool streaming = false;  ///< its slot is published, bytes flow through the stream ring
  bool placing = false;    ///< the rest goes straight to the receive buffer
  /// The peer's service thread, since the stream ring was last seen to move.
  bool asked_to_take = false;
  std::uint64_t done = 0;    ///< bytes that went through the stream ring, or of an RDMA operation
  std::uint64_t placed = 0;  ///< bytes up to which the message is where it belongs
  Slot* slot = nullptr;      ///< of the streaming message
  std::uint64_t waiting_since = 0;  ///< now_ns()
  std::uint64_t deadline = 0;       ///< of the clock of waits: then it becomes an error; ~0: never
  std::uint64_t connecting_until =
      0;  ///< how long the process may take to be met; 0: it is not looked for
  std::uint64_t stalled_since = 0;
  std::uint64_t consumed_seen = 0;
  std::uint64_t asked = 0;  ///< the service request under way, 0: none
  std::uint64_t asked_bytes = 0;
  QuietWait quiet{};

  /// Everything; see PendingSend::clear.
  void clear() noexcept {
    wait = Wait::kNothing;
    streaming = placing = asked_to_take = false;
    done = placed = 0;
    slot = nullptr;
    waiting_since = deadline = connecting_until = stalled_since = 0;
    consumed_seen = asked = asked_bytes = 0;
    quiet.word = nullptr;
    quiet.seen = quiet.service = 0;
    quiet.started = false;
  }
};
static_assert(sizeof(Progress) == 120, "a member more is one more to clear");

}  // namespace verbatim::shm
