// SPDX-License-Identifier: BSD-2-Clause
// See qp_address.hpp.
#include "perf/cli/qp_address.hpp"

#include <arpa/inet.h>

#include <charconv>
#include <cstdio>
#include <cstring>

namespace verbatim::cli {
namespace {

constexpr std::size_t kLidAt = 0, kQpnAt = 5, kPsnAt = 12, kGidAt = 19, kNulAt = 51;
static_assert(kNulAt + 1 == kQpAddressSize);

/// All of `digits` as hex. from_chars takes neither a sign here nor blanks nor "0x".
std::optional<std::uint32_t> hex(std::span<const char> digits) {
  std::uint32_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value, 16);
  if (error != std::errc{} || stopped != end) return {};
  return value;
}

}  // namespace

std::string QpAddress::text(const char* before_gid) const {
  char gid_text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, gid.raw, gid_text, sizeof(gid_text));
  char line[128];
  std::snprintf(line, sizeof(line), "LID 0x%04x, QPN 0x%06x, PSN 0x%06x%sGID %s", lid, qpn, psn,
                before_gid, gid_text);
  return line;
}

QpAddressBytes encode(const QpAddress& address) {
  QpAddressBytes bytes;
  // Masked, so that no value can change the length.
  int at = std::snprintf(bytes.data(), bytes.size(), "%04x:%06x:%06x:", address.lid,
                         address.qpn & 0xffffff, address.psn & 0xffffff);
  for (const std::uint8_t byte : address.gid.raw) {
    const auto offset = static_cast<std::size_t>(at);
    at += std::snprintf(bytes.data() + offset, bytes.size() - offset, "%02x", byte);
  }
  return bytes;
}

std::optional<QpAddress> decode(std::span<const char, kQpAddressSize> bytes) {
  if (bytes[kQpnAt - 1] != ':' || bytes[kPsnAt - 1] != ':' || bytes[kGidAt - 1] != ':' ||
      bytes[kNulAt] != '\0') {
    return {};
  }
  const auto lid = hex(bytes.subspan(kLidAt, 4));
  const auto qpn = hex(bytes.subspan(kQpnAt, 6));
  const auto psn = hex(bytes.subspan(kPsnAt, 6));
  if (!lid || !qpn || !psn) return {};
  QpAddress address{static_cast<std::uint16_t>(*lid), *qpn, *psn, {}};
  for (std::size_t i = 0; i < sizeof(address.gid.raw); ++i) {
    const auto byte = hex(bytes.subspan(kGidAt + 2 * i, 2));
    if (!byte) return {};
    address.gid.raw[i] = static_cast<std::uint8_t>(*byte);
  }
  return address;
}

}  // namespace verbatim::cli
