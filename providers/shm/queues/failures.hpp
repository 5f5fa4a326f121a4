// SPDX-License-Identifier: BSD-2-Clause
//
// Why requests fail. The data path judges with one comparison after another and keeps nothing of
// it; when a request has failed, these judge it once more, now for the reason, from the same
// records. The first failure of each direction is remembered, and said in the log once
// (failure_log.hpp).
//
// Reasons lie everywhere: in keys, memory windows, endpoints, XRC domains. So the bodies of these few
// stand in the room `diagnosis`, above all of those, and are linked from here. They are called
// under the lock of the side they are about, wait for nothing and do not log.
#pragma once

#include <cstdint>

#include "providers/shm/wire/layout.hpp"
#include "runtime/verbs/failure.hpp"
#include "runtime/verbs/handles.hpp"
#include "runtime/verbs/software/posted_receives.hpp"

namespace verbatim::shm {

struct Qp;
struct Peer;
struct PendingSend;

/// What the requester says that it had asked for: a stranger's words.
struct AskedFacts {
  std::uint32_t opcode;
  std::uint32_t status;
  std::uint32_t rkey;
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint32_t srqn;  ///< XRC: of the queue, else 0
};

/// The head of the send queue, or else what is posted next, ends in `status`. The send lock is
/// held.
[[gnu::cold]] void note_failed_send(Qp& qp, ibv_wc_status status) noexcept;
/// A receive ends in `status`, for a message of `length` bytes. The receive CQ's lock is held.
[[gnu::cold]] void note_failed_receive(Qp& qp, const PostedReceive<ReceiveSge>& receive,
                                       std::uint64_t length, ibv_wc_status status) noexcept;
/// A request of the peer's was refused. The send lock is held.
[[gnu::cold]] void note_suffered(Qp& qp, const Peer& peer, const AskedFacts& asked) noexcept;
/// The program moves the queue pair to the error state.
[[gnu::cold]] void note_ordered(Qp& qp) noexcept;
}  // namespace verbatim::shm
