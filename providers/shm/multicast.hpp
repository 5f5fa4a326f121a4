// SPDX-License-Identifier: BSD-2-Clause
//
// Multicast groups: each process shows in its segment which of its UD queue pairs are in which
// groups, and who sends to a group looks at all processes of the fabric. Nothing is kept anywhere
// else, so a process that ends has left its groups. IBTA 10.5; man ibv_attach_mcast.
#pragma once

#include <cstdint>

#include "runtime/verbs/addresses.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim::shm {

struct Qp;

/// The number that a request to a group names (IBTA 10.5.2).
inline constexpr std::uint32_t kGroupQpn = 0xffffff;
/// So many queue pairs one datagram reaches.
inline constexpr std::uint32_t kMaxMembers = 1024;

using verbatim::is_group;

/// The numbers of the living members of a group but `except`. Any thread.
std::uint32_t members_of(const ibv_gid& group, std::uint32_t except,
                         std::uint32_t (&out)[kMaxMembers]) noexcept;

// The plug's slots.
int attach_mcast(verbatim::Qp& qp, const ibv_gid& gid, std::uint16_t lid) noexcept;
int detach_mcast(verbatim::Qp& qp, const ibv_gid& gid, std::uint16_t lid) noexcept;

}  // namespace verbatim::shm
