// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/address_hex.hpp"

#include <arpa/inet.h>

#include <charconv>

namespace verbatim::cli {

std::optional<std::uint32_t> parse_hex(std::span<const char> digits) {
  std::uint32_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value, 16);
  if (error != std::errc{} || stopped != end) return {};
  return value;
}

void write_gid(std::span<char, kGidDigits + 1> to, const ibv_gid& gid) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::size_t at = 0;
  for (const std::uint8_t byte : gid.raw) {
    to[at++] = kDigits[byte >> 4];
    to[at++] = kDigits[byte & 0xf];
  }
  to[at] = '\0';
}

std::optional<ibv_gid> parse_gid(std::span<const char, kGidDigits> digits) {
  ibv_gid gid{};
  for (std::size_t i = 0; i < sizeof(gid.raw); ++i) {
    const auto byte = parse_hex(digits.subspan(2 * i, 2));
    if (!byte) return {};
    gid.raw[i] = static_cast<std::uint8_t>(*byte);
  }
  return gid;
}

std::string gid_text(const ibv_gid& gid) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
  return text;
}

}  // namespace verbatim::cli
