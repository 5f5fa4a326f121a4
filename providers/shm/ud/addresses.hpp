// SPDX-License-Identifier: BSD-2-Clause
//
// Which addresses lead to the devices of this host.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "providers/shm/memory/context.hpp"

namespace verbatim::shm {

inline constexpr std::uint32_t kMaxDevices = 16;

/// Of a GUID: the device number plus one; the rest is the host's.
inline constexpr std::uint64_t kDeviceBits = 0xff;

/// GIDs of a port of link layer Ethernet, as adapters with an IPv4 address have them: link-local of
/// RoCE v1 and v2, then that address mapped, of v1 and v2. Of InfiniBand there is the first.
inline constexpr int kGids = 4;
inline constexpr bool is_roce_v2(std::uint8_t gid_index) noexcept { return (gid_index & 1) != 0; }

/// A GID of another device of this host, by its number.
ibv_gid gid_of_device(const Context& context, std::uint32_t number, std::uint8_t index) noexcept;
/// Whether a path leads to a device of this host at all; by a LID, or with a GID.
bool leads_to_this_host(const Context& context, const ibv_ah_attr& path) noexcept;

}  // namespace verbatim::shm
