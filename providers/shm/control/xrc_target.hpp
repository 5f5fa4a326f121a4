// SPDX-License-Identifier: BSD-2-Clause
//
// XRC targets (XRC_RECV): where an initiator's connection ends. One has no queues; it holds the
// attributes, the state and the domain, and shows them in its record.
//
// It lives in the process that made it, which serves it. Other processes of the domain open it
// (ibv_open_qp): they say so in their own segments, so nobody needs to keep count. It is there
// until nobody has it open and ends when its process does. Who has it open hears of its events
// from its record, at the service thread's next sweep.
//
// Any thread. Source: man ibv_open_qp, IBTA A14.
#pragma once

#include "providers/shm/queues/qp.hpp"

namespace verbatim::shm {

/// ibv_create_qp of an XRC_RECV queue pair.
int create_target(verbatim::Context& context, ibv_qp_init_attr_ex& attr,
                  verbatim::Qp** out) noexcept;
/// Raises what the target's record tells anew. Service thread; live.mutex is held.
void watch_target(Qp& opened) noexcept;

/// Ends targets that their program has destroyed and that nobody has open any more. No lock is
/// held.
void end_orphans() noexcept;
/// A forked child has none of them.
void forget_targets_of_parent() noexcept;
/// The process leaves the fabric.
void forget_orphans() noexcept;

// The plug's slot.
int open_qp(verbatim::Context& context, const ibv_qp_open_attr& attr, verbatim::Qp** out) noexcept;

}  // namespace verbatim::shm
