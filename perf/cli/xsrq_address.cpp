// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/xsrq_address.hpp"

#include <cstdio>

#include "perf/cli/address_hex.hpp"

namespace verbatim::cli {
namespace {

constexpr std::size_t kGidAt = 33;
constexpr std::size_t kNumberAt[] = {0, 5, 12, 19, 26};  // a colon before each but the first
constexpr std::size_t kDigits[] = {4, 6, 6, 6, 6};
static_assert(kGidAt + kGidDigits + 1 == kXsrqAddressSize);

}  // namespace

std::string XsrqAddress::text() const {
  char line[160];
  std::snprintf(line, sizeof(line),
                "LID %04x, QPN RECV %06x SEND %06x, PSN %06x, SRQN %06x, GID %s", lid, target,
                initiator, psn, srqn, gid_text(gid).c_str());
  return line;
}

XsrqAddressBytes encode(const XsrqAddress& address) {
  XsrqAddressBytes bytes;
  // Masked, so that no value can change the length.
  std::snprintf(bytes.data(), bytes.size(), "%04x:%06x:%06x:%06x:%06x:", address.lid,
                address.target & 0xffffff, address.initiator & 0xffffff, address.psn & 0xffffff,
                address.srqn & 0xffffff);
  write_gid(std::span(bytes).last<kGidDigits + 1>(), address.gid);
  return bytes;
}

std::optional<XsrqAddress> decode_xsrq(std::span<const char, kXsrqAddressSize> bytes) {
  if (bytes.back() != '\0' || bytes[kGidAt - 1] != ':') return {};
  std::uint32_t numbers[5];
  for (std::size_t i = 0; i < 5; ++i) {
    const auto number = parse_hex(bytes.subspan(kNumberAt[i], kDigits[i]));
    if (!number || (i != 0 && bytes[kNumberAt[i] - 1] != ':')) return {};
    numbers[i] = *number;
  }
  const auto gid = parse_gid(bytes.subspan<kGidAt, kGidDigits>());
  if (!gid) return {};
  return XsrqAddress{
      static_cast<std::uint16_t>(numbers[0]), numbers[1], numbers[2], numbers[3], numbers[4], *gid};
}

}  // namespace verbatim::cli
