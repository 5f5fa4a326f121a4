// SPDX-License-Identifier: BSD-2-Clause
//
// What makes a completion queue an extended one (ibv_create_cq_ex): the functions behind
// ibv_start_poll and ibv_wc_read_*, and the time of completions. Every queue gets them; what nobody
// asked for costs nothing. Source: man ibv_create_cq_ex.
//
// Time: a request of ours is stamped when it completes, a message when it is taken from its ring,
// by the poll that gives it. The raw clock counts nanoseconds since boot, the same for all
// processes of the host; ibv_query_rt_values_ex reads it.
#pragma once

#include "providers/shm/queues/cq.hpp"

namespace verbatim::shm {

inline constexpr std::uint64_t kRawClockKhz = 1'000'000;

/// REQUIRES: a ring. Any field may be asked for: what nothing here travels with, VLAN and flow tags
/// and tag matching, reads as 0. 0 or ENOMEM.
int wire_cursor(Cq& cq, const ibv_cq_init_attr_ex& attr) noexcept;

int query_rt_values(verbatim::Context& context, ibv_values_ex& values) noexcept;

}  // namespace verbatim::shm
