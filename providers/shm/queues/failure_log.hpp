// SPDX-License-Identifier: BSD-2-Clause
//
// Failures remembered, told, and said in the log. say_failures() is called where no lock of a queue pair
// or a CQ is held; what is only remembered waits for nothing.
#pragma once

#include "runtime/verbs/failure.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim::shm {

struct Qp;
struct Peer;

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
/// Before the process ends, or leaves the fabric.
void say_all_failures() noexcept;

/// A queue pair is reset, or goes.
void forget_failures(Qp& qp) noexcept;
/// In a forked child: its locks may be a parent's thread's.
void forget_unsaid_in_child() noexcept;

/// The plug's slot.
int explain_qp(verbatim::Qp& qp, const FailedCompletion* completion, Failure& out) noexcept;

/// The program has led the sends from SQE back to RTS: the next failure is a first one again.
[[gnu::cold]] void note_led_back(Qp& qp) noexcept;

}  // namespace verbatim::shm
