// SPDX-License-Identifier: BSD-2-Clause
// Address handles, and the way back to who sent a message. Any thread.
#pragma once

#include <cstdint>

#include "runtime/base/result.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim {

/// The address of a group: of IPv6, or on RoCE v2 perhaps one of IPv4 (::ffff:224.0.0.0/4).
[[nodiscard]] inline bool is_group(const ibv_gid& gid) noexcept {
  constexpr unsigned char kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return gid.raw[0] == 0xff ||
         (__builtin_memcmp(gid.raw, kMapped, sizeof kMapped) == 0 && gid.raw[12] >> 4 == 0xe);
}

Result<Ah*> create_ah(Pd& pd, const ibv_ah_attr& attr) noexcept;
Status destroy_ah(Ah& ah) noexcept;

/// The path back to the sender of `wc`. `grh` (40 bytes as UD delivers them: a GRH, or on RoCE v2
/// perhaps an IPv4 header in the last 20) is read only when wc says that it is there.
Status path_of_sender(Context& context, std::uint32_t port, const ibv_wc& wc, const ibv_grh* grh,
                      ibv_ah_attr& out) noexcept;

/// The Ethernet address (6 bytes) and VLAN (0xffff: none) behind the path's GID.
Status resolve_eth_l2(Context& context, ibv_ah_attr& attr, std::uint8_t* mac,
                      std::uint16_t& vlan) noexcept;

}  // namespace verbatim
