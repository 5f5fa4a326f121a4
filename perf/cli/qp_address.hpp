// SPDX-License-Identifier: BSD-2-Clause
// How two pingpong programs write to each other where their queue pairs are.
//
//   "%04x:%06x:%06x:" lid qpn psn, then the GID as 32 hex digits in wire order, then a NUL
//
// 52 bytes in all, as the classic tools write them. Any thread; pure.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "perf/support/qp_address.hpp"

namespace verbatim::cli {

using perf::QpAddress;

/// "LID 0x0001, QPN 0x000010, PSN 0x0a0b0c, GID ::", as the tools print it.
std::string text(const QpAddress& address, const char* before_gid = ", ");

constexpr std::size_t kQpAddressSize = 52;
using QpAddressBytes = std::array<char, kQpAddressSize>;

QpAddressBytes encode(const QpAddress& address);

/// Nothing unless every byte is as encode() would have written it (either case of hex digits).
std::optional<QpAddress> decode(std::span<const char, kQpAddressSize> bytes);

}  // namespace verbatim::cli
