// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/qp_address.hpp"

#include <cstdio>

#include "perf/cli/address_hex.hpp"

namespace verbatim::cli {
namespace {

constexpr std::size_t kLidAt = 0, kQpnAt = 5, kPsnAt = 12, kGidAt = 19, kNulAt = 51;
static_assert(kNulAt + 1 == kQpAddressSize);

}  // namespace

std::string text(const QpAddress& address, const char* before_gid) {
  char line[128];
  std::snprintf(line, sizeof(line), "LID 0x%04x, QPN 0x%06x, PSN 0x%06x%sGID %s", address.lid,
                address.qpn, address.psn, before_gid, gid_text(address.gid).c_str());
  return line;
}

QpAddressBytes encode(const QpAddress& address) {
  QpAddressBytes bytes;
  // Masked, so that no value can change the length.
  std::snprintf(bytes.data(), bytes.size(), "%04x:%06x:%06x:", address.lid, address.qpn & 0xffffff,
                address.psn & 0xffffff);
  write_gid(std::span(bytes).last<kGidDigits + 1>(), address.gid);
  return bytes;
}

std::optional<QpAddress> decode(std::span<const char, kQpAddressSize> bytes) {
  if (bytes[kQpnAt - 1] != ':' || bytes[kPsnAt - 1] != ':' || bytes[kGidAt - 1] != ':' ||
      bytes[kNulAt] != '\0') {
    return {};
  }
  const auto lid = parse_hex(bytes.subspan(kLidAt, 4));
  const auto qpn = parse_hex(bytes.subspan(kQpnAt, 6));
  const auto psn = parse_hex(bytes.subspan(kPsnAt, 6));
  const auto gid = parse_gid(bytes.subspan<kGidAt, kGidDigits>());
  if (!lid || !qpn || !psn || !gid) return {};
  return QpAddress{static_cast<std::uint16_t>(*lid), *qpn, *psn, *gid};
}

}  // namespace verbatim::cli
