// SPDX-License-Identifier: BSD-2-Clause
// What two pingpong programs tell each other before they can talk verbs, and how it is written.
//
//   "%04x:%06x:%06x:" lid qpn psn, then the GID as 32 hex digits in wire order, then a NUL
//
// 52 bytes in all, as the classic tools write them. Any thread; pure.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace verbatim::cli {

struct QpAddress {
  std::uint16_t lid = 0;
  std::uint32_t qpn = 0;  // 24 bits
  std::uint32_t psn = 0;  // 24 bits
  union ibv_gid gid = {};

  /// "LID 0x0001, QPN 0x000010, PSN 0x0a0b0c, GID ::", as the tools print it.
  std::string text(const char* before_gid = ", ") const;
};

constexpr std::size_t kQpAddressSize = 52;
using QpAddressBytes = std::array<char, kQpAddressSize>;

QpAddressBytes encode(const QpAddress& address);

/// Nothing unless every byte is as encode() would have written it (either case of hex digits).
std::optional<QpAddress> decode(std::span<const char, kQpAddressSize> bytes);

}  // namespace verbatim::cli
