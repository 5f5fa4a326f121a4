// SPDX-License-Identifier: BSD-2-Clause
//
// Completion counters (man ibv_create_comp_cntr, ibv_qp_attach_comp_cntr): SENDs, RDMA WRITEs and
// RDMA READs of a queue pair, and what it receives. What a peer reads and writes by itself is not
// counted: nobody here takes part in it.
//
// A queue pair whose requests are counted posts each of them the general way, where its completion
// is given; others pay nothing. Receives cost nothing at all: each side has a count of messages
// taken anyway, and a look at the counter adds what has come to it since the last one. A program
// may look at the counter alone and poll no queue, so a look also takes what has come, and stores
// its completions in the queue while that has room.
//
// Locks: the counter's (its list of queue pairs), then those of the data path, which never takes
// it.
#pragma once

#include <cstdint>

#include "providers/shm/queues/counted_requests.hpp"

namespace verbatim::shm {

/// The receives of a counted queue pair begin anew: what there was is in its counters. REQUIRES:
/// the receive CQ's lock.
void close_receive_counts(Qp& qp) noexcept;
/// The queue pair goes: its counters may be destroyed. REQUIRES: no lock.
void leave_counters(Qp& qp) noexcept;
/// In a forked child, for its copy.
void leave_counters_in_child(Qp& qp) noexcept;

int query_comp_cntr_caps(verbatim::Context& context, ibv_comp_cntr_caps& caps) noexcept;
int create_comp_cntr(verbatim::Context& context, const ibv_comp_cntr_init_attr& attr,
                     verbatim::CompCntr** out) noexcept;
int destroy_comp_cntr(verbatim::CompCntr& counter) noexcept;
int set_comp_cntr(verbatim::CompCntr& counter, CountOf which, std::uint64_t value) noexcept;
int inc_comp_cntr(verbatim::CompCntr& counter, CountOf which, std::uint64_t amount) noexcept;
int read_comp_cntr(verbatim::CompCntr& counter, CountOf which, std::uint64_t& value) noexcept;
int attach_comp_cntr(verbatim::Qp& qp, verbatim::CompCntr& counter, std::uint32_t ops) noexcept;
/// What is in it, whatever has come meanwhile.
int read_stored_count(verbatim::CompCntr& counter, CountOf which, std::uint64_t& value) noexcept;

}  // namespace verbatim::shm
