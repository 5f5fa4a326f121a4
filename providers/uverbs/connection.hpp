// SPDX-License-Identifier: BSD-2-Clause
// Who is at the other end of a queue pair, where no number in it tells: what the kernel's
// connection manager has of it, whichever library asked for the connection. Control code, for
// explanations: one question over netlink, which anybody may ask.
#pragma once

#include <cstdint>

#include "providers/uverbs/netlink_port.hpp"
#include "providers/uverbs/queue_pairs.hpp"
#include "runtime/verbs/failure.hpp"

namespace verbatim::uverbs {

/// `device`: ibv_get_device_index. 0, an errno, or ENOENT: no connection of that queue pair is
/// known (any more), or several that differ.
[[nodiscard]] int find_peer(const NetlinkPort& port, std::uint32_t device, std::uint32_t qpn,
                            RemotePlace& out) noexcept;
/// Finds the peer of a queue pair of `context`, if the kernel says it; else `out` stays.
void see_peer(Context& context, std::uint32_t qpn, RemotePlace& out) noexcept;

}  // namespace verbatim::uverbs
