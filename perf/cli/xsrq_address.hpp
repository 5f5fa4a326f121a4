// SPDX-License-Identifier: BSD-2-Clause
// What two XRC pingpong programs tell each other before they can talk verbs, and how it is written.
//
//   "%04x:%06x:%06x:%06x:%06x:" lid recv-qpn send-qpn psn srqn, the GID as 32 hex digits in wire
//   order, a NUL
//
// 66 bytes in all, as the classic tool writes them. Any thread; pure.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace verbatim::cli {

struct XsrqAddress {
  std::uint16_t lid = 0;
  std::uint32_t target = 0;     // QPN that receives; 24 bits, as the next three
  std::uint32_t initiator = 0;  // QPN that sends
  std::uint32_t psn = 0;        // of both
  std::uint32_t srqn = 0;
  union ibv_gid gid = {};

  /// "LID 0001, QPN RECV 000010 SEND 000011, PSN 0a0b0c, SRQN 000012, GID ::", as the tool prints.
  std::string text() const;
};

constexpr std::size_t kXsrqAddressSize = 66;
using XsrqAddressBytes = std::array<char, kXsrqAddressSize>;

XsrqAddressBytes encode(const XsrqAddress& address);

/// Nothing unless every byte is as encode() would have written it (either case of hex digits).
std::optional<XsrqAddress> decode_xsrq(std::span<const char, kXsrqAddressSize> bytes);

}  // namespace verbatim::cli
