// SPDX-License-Identifier: BSD-2-Clause
//
// How a queue pair comes to be: a number, and a record that says so to peers.
#pragma once

#include "providers/shm/queues/qp.hpp"

namespace verbatim::shm {

/// A number for `qp`, and memory behind its record. 0 or errno.
int take_number(Qp& qp) noexcept;
/// Undoes take_number(), and the queue pair.
void give_up(Qp& qp) noexcept;
void set_constants(Qp& qp) noexcept;
/// Its receives come from `srq`. Entries of the ring in which senders put messages for it.
std::uint32_t share_receives(Qp& qp, Srq& srq) noexcept;
/// Says to peers what it is. `speaks_for`: of an endpoint, the number that applications know.
void fill_record(const Qp& qp, std::uint32_t entries, std::uint32_t speaks_for) noexcept;

/// An unnamed queue pair on behalf of `parent` that takes from `srq` (nullptr: that only sends), in
/// no list. nullptr: no memory or no numbers left.
Qp* make_endpoint(Qp& parent, Srq* srq) noexcept;
/// The same for what sends and receives nothing itself; it completes nowhere, but `cq` is where its
/// locks are. In no list.
Qp* make_presence(ibv_context* context, ibv_qp_type type, XrcRole role, Cq& cq) noexcept;

}  // namespace verbatim::shm
