// SPDX-License-Identifier: BSD-2-Clause
// The pieces of the addresses that pingpong programs exchange (qp_address.hpp, xsrq_address.hpp).
// Any thread; pure.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace verbatim::cli {

/// All of `digits` as hex, in either case: neither a sign nor blanks nor "0x".
std::optional<std::uint32_t> parse_hex(std::span<const char> digits);

constexpr std::size_t kGidDigits = 2 * sizeof(ibv_gid);

/// A GID in wire order, in hex digits and a NUL.
void write_gid(std::span<char, kGidDigits + 1> to, const ibv_gid& gid);
std::optional<ibv_gid> parse_gid(std::span<const char, kGidDigits> digits);

/// "fe80::1", as the tools print it.
std::string gid_text(const ibv_gid& gid);

}  // namespace verbatim::cli
