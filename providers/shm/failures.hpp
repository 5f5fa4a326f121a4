// SPDX-License-Identifier: BSD-2-Clause
//
// Why requests fail. The data path judges with one comparison after another and keeps nothing of
// it; when a request has failed, these judge it once more, now for the reason, from the same
// records. The first failure of each direction is remembered, and said in the log once.
//
// The note_ functions are called under the lock of the side they are about, wait for nothing and do
// not log; say_failures() is called where no lock of a queue pair or a CQ is held.
#pragma once

#include <cstdint>

#include "providers/shm/fabric/layout.hpp"
#include "runtime/verbs/failure.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim::shm {

struct Qp;
struct Peer;
struct PendingSend;

/// A posted receive, as its queue has it.
struct ReceiveFacts {
  std::uint64_t wr_id;
  const ReceiveSge* sges;
  std::uint32_t num_sge;
};

/// What the requester says that it had asked for: a stranger's words.
struct AskedFacts {
  std::uint32_t opcode;
  std::uint32_t status;
  std::uint32_t rkey;
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint32_t srqn;  ///< XRC: of the queue, else 0
};

/// Bytes of the peer's memory that a request names.
std::uint64_t remote_bytes(const PendingSend& send) noexcept;

/// The head of the send queue, or else what is posted next, ends in `status`. The send lock is
/// held.
[[gnu::cold]] void note_failed_send(Qp& qp, ibv_wc_status status) noexcept;
/// A receive ends in `status`, for a message of `length` bytes. The receive CQ's lock is held.
[[gnu::cold]] void note_failed_receive(Qp& qp, const ReceiveFacts& receive, std::uint64_t length,
                                       ibv_wc_status status) noexcept;
/// A request of the peer's was refused. The send lock is held.
[[gnu::cold]] void note_suffered(Qp& qp, const Peer& peer, const AskedFacts& asked) noexcept;
/// The program moves the queue pair to the error state.
[[gnu::cold]] void note_ordered(Qp& qp) noexcept;
/// The program has led the sends from SQE back to RTS: the next failure is a first one again.
[[gnu::cold]] void note_led_back(Qp& qp) noexcept;
/// Remembers `failure` unless an earlier one of its direction is remembered; of an XRC queue the
/// last.
void remember(Qp& qp, const Failure& failure) noexcept;
ProgramName name_of(const Peer& peer) noexcept;
/// Names the process that has `remote_qpn`, if it is known.
void name_owner(Failure& failure) noexcept;
/// Is the direction's first failure known already?
bool knows_failure(Qp& qp, bool receives) noexcept;

/// The queue pair's first failure is now seen by the program: it is to be in the log. The send lock
/// is held, its send CQ's lock is not.
[[gnu::cold]] void want_said(Qp& qp) noexcept;
/// The same under the receive CQ's lock.
[[gnu::cold]] void want_said_locked(Qp& qp) noexcept;
/// Writes what is to be said. Of one cause, by one process, the first failure at once, and those of
/// the next second together in one line; with `all` whatever is held back for that.
void say_failures(bool all = false) noexcept;
/// Before the process, or the node, ends.
void say_all_failures() noexcept;

/// A queue pair is reset, or goes.
void forget_failures(Qp& qp) noexcept;
/// In a forked child: its locks may be a parent's thread's.
void forget_unsaid_in_child() noexcept;

/// The plug's slot.
int explain_qp(verbatim::Qp& qp, const FailedCompletion* completion, Failure& out) noexcept;

}  // namespace verbatim::shm
