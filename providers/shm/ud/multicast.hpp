// SPDX-License-Identifier: BSD-2-Clause
//
// Multicast groups: each process shows in its segment which of its UD queue pairs are in which
// groups, and who sends to a group looks at all processes of the fabric. Nothing is kept anywhere
// else, so a process that ends has left its groups. A process speaks for its own queue pairs only,
// and each for itself: what one shows neither subscribes another's nor takes anybody's place. IBTA
// 10.5; man ibv_attach_mcast.
#pragma once

#include <cstdint>

#include "providers/shm/queues/ud_role.hpp"
#include "runtime/verbs/addresses.hpp"
#include "runtime/verbs/handles.hpp"
#include "runtime/verbs/software/group_table.hpp"

namespace verbatim::shm {

struct Qp;
struct QpRecord;

/// So many queue pairs of one process are in a group.
inline constexpr std::uint32_t kMaxMembers = 1024;

using verbatim::is_group;

/// Finds the living members of a group but `except`, all that `members` has or gets memory for; how
/// many. Any thread.
std::uint32_t find_members(const ibv_gid& group, std::uint32_t except, Members& members) noexcept;

// The plug's slots.
int attach_mcast(verbatim::Qp& qp, const ibv_gid& gid, std::uint16_t lid) noexcept;
int detach_mcast(verbatim::Qp& qp, const ibv_gid& gid, std::uint16_t lid) noexcept;

}  // namespace verbatim::shm
