// SPDX-License-Identifier: BSD-2-Clause
// See xsrq_address.hpp.
#include "perf/cli/xsrq_address.hpp"

#include <arpa/inet.h>

#include <charconv>
#include <cstdio>

namespace verbatim::cli {
namespace {

constexpr std::size_t kGidAt = 33;
constexpr std::size_t kNumberAt[] = {0, 5, 12, 19, 26};  // a colon before each but the first
constexpr std::size_t kDigits[] = {4, 6, 6, 6, 6};
static_assert(kGidAt + 2 * sizeof(ibv_gid) + 1 == kXsrqAddressSize);

/// All of `digits` as hex. from_chars takes neither a sign here nor blanks nor "0x".
std::optional<std::uint32_t> hex(std::span<const char> digits) {
  std::uint32_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value, 16);
  if (error != std::errc{} || stopped != end) return {};
  return value;
}

}  // namespace

std::string XsrqAddress::text() const {
  char gid_text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, gid.raw, gid_text, sizeof(gid_text));
  char line[160];
  std::snprintf(line, sizeof(line),
                "LID %04x, QPN RECV %06x SEND %06x, PSN %06x, SRQN %06x, GID %s", lid, target,
                initiator, psn, srqn, gid_text);
  return line;
}

XsrqAddressBytes encode(const XsrqAddress& address) {
  XsrqAddressBytes bytes;
  // Masked, so that no value can change the length.
  int at = std::snprintf(bytes.data(), bytes.size(), "%04x:%06x:%06x:%06x:%06x:", address.lid,
                         address.target & 0xffffff, address.initiator & 0xffffff,
                         address.psn & 0xffffff, address.srqn & 0xffffff);
  for (const std::uint8_t byte : address.gid.raw) {
    const auto offset = static_cast<std::size_t>(at);
    at += std::snprintf(bytes.data() + offset, bytes.size() - offset, "%02x", byte);
  }
  return bytes;
}

std::optional<XsrqAddress> decode_xsrq(std::span<const char, kXsrqAddressSize> bytes) {
  if (bytes.back() != '\0' || bytes[kGidAt - 1] != ':') return {};
  std::uint32_t numbers[5];
  for (std::size_t i = 0; i < 5; ++i) {
    const auto number = hex(bytes.subspan(kNumberAt[i], kDigits[i]));
    if (!number || (i != 0 && bytes[kNumberAt[i] - 1] != ':')) return {};
    numbers[i] = *number;
  }
  XsrqAddress address{
      static_cast<std::uint16_t>(numbers[0]), numbers[1], numbers[2], numbers[3], numbers[4], {}};
  for (std::size_t i = 0; i < sizeof(address.gid.raw); ++i) {
    const auto byte = hex(bytes.subspan(kGidAt + 2 * i, 2));
    if (!byte) return {};
    address.gid.raw[i] = static_cast<std::uint8_t>(*byte);
  }
  return address;
}

}  // namespace verbatim::cli
