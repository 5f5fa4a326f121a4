// SPDX-License-Identifier: BSD-2-Clause
// What stands in front of a datagram in the receive that it lands in: 40 bytes in which the receiver
// finds the sender's address and the path (IBTA 8.3, 11.4.2.1). InfiniBand and RoCE v1 put a global
// routing header there; RoCE v2 the header of IPv6, which has the same shape, or in the last 20
// bytes that of IPv4 (annex A17). The way back from it is path_of_sender() (addresses.hpp). Pure;
// any thread.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace verbatim {

struct DatagramPath {
  ibv_gid source{};
  ibv_gid destination{};              ///< the receiver's, or a group's
  std::uint32_t payload = 0;          ///< bytes of the message
  std::uint32_t class_and_label = 0;  ///< traffic class << 20 | flow label
  std::uint8_t hop_limit = 64;
  bool over_udp = false;  ///< RoCE v2
};

/// Is it an IPv4 address in the clothes of IPv6 (::ffff:a.b.c.d)?
[[nodiscard]] bool is_mapped_ipv4(const ibv_gid& gid) noexcept;

void write_routing_header(const DatagramPath& path, unsigned char (&to)[sizeof(ibv_grh)]) noexcept;

/// The Q_Key that a datagram carries: a request whose Q_Key has its high bit set asks for the one of
/// its queue pair instead (IBTA 10.2.5).
[[nodiscard]] constexpr std::uint32_t carried_qkey(std::uint32_t asked,
                                                   std::uint32_t own) noexcept {
  return (asked & 0x80000000u) != 0 ? own : asked;
}

}  // namespace verbatim
