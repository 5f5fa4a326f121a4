// SPDX-License-Identifier: BSD-2-Clause
//
// Memory windows, the owner's side (IBTA 10.6.7, man ibv_alloc_mw, ibv_bind_mw). A window is a
// record of the region table for itself: bound, it says where it leads and who may use it; unbound,
// nothing. It stands for part of a region, which it keeps from being deregistered.
//
//   type 1  bound by ibv_bind_mw, for every queue pair of its domain; binding again gives it a new
//           key and closes the old one, with the promise of deregistration, before it returns
//   type 2  bound by a work request, for the queue pair that it is posted to (2B); closed by
//           LOCAL_INV, by a message of that queue pair's peer, or with the queue pair. The closing
//           request or message completes when the peer copies nothing through the window any more
//
// Rights: those of a window need not be a part of its region's remote rights, which is what windows
// are for; to be written through it, its region must have LOCAL_WRITE (IBTA C10-74). What only a
// region can have says nothing of a window, and may be asked for.
//
// A spin lock guards all bindings; it is the innermost lock, and nobody waits under it.
#pragma once

#include "providers/shm/queues/qp.hpp"
#include "providers/shm/queues/step.hpp"
#include "providers/shm/wire/layout.hpp"
#include "runtime/verbs/failure.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim::shm {

struct Mr;

struct Mw : verbatim::Mw {
  Mr* mr = nullptr;       ///< what it is bound to, nullptr: unbound
  Qp* qp = nullptr;       ///< of type 2: on which it is bound
  std::uint32_t key = 0;  ///< under which it is bound; its index is the window's for life
  Mw* next = nullptr;     ///< of those bound on the same queue pair
  Mw* prev = nullptr;
};

int alloc_mw(verbatim::Pd& pd, ibv_mw_type type, verbatim::Mw** out) noexcept;
int dealloc_mw(verbatim::Mw& mw) noexcept;
/// Takes the key away under which it is bound; who looked it up before may still be copying. False:
/// it was not bound.
bool close_bound(Mw& mw) noexcept;
/// What post_send refuses of an IBV_WR_BIND_MW: 0 or EINVAL.
int check_bind(const ibv_send_wr& wr) noexcept;
/// IBV_WR_BIND_MW and IBV_WR_LOCAL_INV at the head of the queue. The send lock is held.
Step do_window(Qp& qp, const PendingSend& send) noexcept;

/// Why such a request has failed: fills `window` and `key`. The send lock is held.
[[gnu::cold]] void judge_window(const Qp& qp, const PendingSend& send, Failure& failure) noexcept;

/// Requester: may a message end this key of the peer's? REQUIRES: attached, the send lock.
bool may_invalidate(Qp& qp, std::uint32_t rkey) noexcept;
/// Such a message is on its way: for us the key is dead from now on.
void note_invalidated(Qp& qp, std::uint32_t rkey) noexcept;
/// Are there as many of those as can be remembered?
bool remembers_enough(Qp& qp) noexcept;

/// Responder: message number `index` ends `rkey`. REQUIRES: the receive CQ's lock, attached.
enum class Ended : std::uint8_t {
  kEnded,
  kNotYet,  ///< it is dead, but the sender may still be copying through it
  kWrong    ///< it is no window of this queue pair
};
enum class EndedBy : std::uint8_t { kPoll, kServiceThread };
Ended end_window(Qp& qp, std::uint64_t index, std::uint32_t rkey, EndedBy who) noexcept;

/// The queue pair is destroyed; its number may come back.
void close_windows_of(Qp& qp) noexcept;

/// In a forked child: whoever had the windows' lock was a thread of the parent's.
void remake_window_lock() noexcept;

}  // namespace verbatim::shm
