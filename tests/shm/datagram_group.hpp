// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace verbatim::harness {

/// Of a datagram's receive: what comes before its bytes (IBTA 11.4.1.2).
inline constexpr std::uint64_t kHeader = 40;

/// A multicast group of the local scope.
inline ibv_gid group(std::uint8_t last) {
  ibv_gid gid{};
  gid.raw[0] = 0xff;
  gid.raw[1] = 0x12;
  gid.raw[15] = last;
  return gid;
}

}  // namespace verbatim::harness
