// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/verbs/software/routing_header.hpp"

#include <arpa/inet.h>
#include <endian.h>

#include <cstddef>
#include <cstring>

namespace verbatim {
namespace {

constexpr std::uint8_t kUdp = 17;
/// Lengths in headers count what a wire carries: BTH, DETH and the ICRC are around the message.
constexpr std::uint32_t kTransportBytes = 12 + 8 + 4;
constexpr std::uint32_t kIpv4Bytes = 20, kUdpBytes = 8;
constexpr std::size_t kIpv4At = sizeof(ibv_grh) - 20;

/// RFC 1071, of the header's 20 bytes.
std::uint16_t ipv4_checksum(const unsigned char* header) noexcept {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < 20; i += 2)
    sum += static_cast<std::uint32_t>(header[i] << 8 | header[i + 1]);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~(sum + (sum >> 16)));
}

/// RFC 791.
void write_ipv4_header(const DatagramPath& path, unsigned char* at) noexcept {
  constexpr std::uint8_t kVersionAndWords = 0x45, kDoNotFragment = 0x40;
  const auto bytes =
      static_cast<std::uint16_t>(path.payload + kTransportBytes + kIpv4Bytes + kUdpBytes);
  const unsigned char header[] = {kVersionAndWords,
                                  static_cast<unsigned char>(path.class_and_label >> 20),
                                  static_cast<unsigned char>(bytes >> 8),
                                  static_cast<unsigned char>(bytes),
                                  0,
                                  0,
                                  kDoNotFragment,
                                  0,
                                  path.hop_limit,
                                  kUdp};
  std::memcpy(at, header, sizeof header);
  std::memcpy(at + 12, path.source.raw + 12, 4);
  std::memcpy(at + 16, path.destination.raw + 12, 4);
  const std::uint16_t check = ipv4_checksum(at);
  at[10] = static_cast<unsigned char>(check >> 8);
  at[11] = static_cast<unsigned char>(check);
}

}  // namespace

bool is_mapped_ipv4(const ibv_gid& gid) noexcept {
  return gid.global.subnet_prefix == 0 && be64toh(gid.global.interface_id) >> 32 == 0xffff;
}

void write_routing_header(const DatagramPath& path, unsigned char (&to)[sizeof(ibv_grh)]) noexcept {
  constexpr std::uint8_t kTransport = 0x1b;  // the next header is a BTH
  std::memset(to, 0, sizeof to);
  if (path.over_udp && is_mapped_ipv4(path.source) && is_mapped_ipv4(path.destination)) {
    write_ipv4_header(path, to + kIpv4At);
    return;
  }
  ibv_grh grh{};
  grh.version_tclass_flow = htonl(6u << 28 | (path.class_and_label & 0xfffffffu));
  grh.paylen = htons(
      static_cast<std::uint16_t>(path.payload + kTransportBytes + (path.over_udp ? kUdpBytes : 0)));
  grh.next_hdr = path.over_udp ? kUdp : kTransport;
  grh.hop_limit = path.hop_limit;
  grh.sgid = path.source;
  grh.dgid = path.destination;
  std::memcpy(to, &grh, sizeof to);
}

}  // namespace verbatim
