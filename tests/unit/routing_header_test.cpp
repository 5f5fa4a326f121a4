// SPDX-License-Identifier: BSD-2-Clause
// The 40 bytes in front of a datagram, held against the layouts of IBTA 8.3 and RFC 791.
#include "runtime/verbs/software/routing_header.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cstring>

namespace verbatim {
namespace {

ibv_gid gid_of(const char* address) {
  ibv_gid gid{};
  EXPECT_EQ(::inet_pton(AF_INET6, address, gid.raw), 1) << address;
  return gid;
}

constexpr std::uint32_t kClass = 0x5a, kLabel = 0x12345, kPayload = 1000;

DatagramPath path_between(const char* source, const char* destination, bool over_udp) {
  return {gid_of(source), gid_of(destination), kPayload, kClass << 20 | kLabel, 9, over_udp};
}

struct RoutingHeader : ::testing::Test {
  void write(const DatagramPath& path) {
    std::memset(bytes, 0xee, sizeof bytes);
    write_routing_header(path, bytes);
    std::memcpy(&grh, bytes, sizeof grh);
  }
  unsigned char bytes[40];
  ibv_grh grh{};
};

TEST_F(RoutingHeader, OfInfiniBandNamesThePathAndATransportBehindIt) {
  const DatagramPath path = path_between("fe80::1", "fe80::2", false);
  write(path);
  EXPECT_EQ(ntohl(grh.version_tclass_flow), 6u << 28 | kClass << 20 | kLabel);
  EXPECT_EQ(ntohs(grh.paylen), kPayload + 24) << "BTH, DETH and ICRC count";
  EXPECT_EQ(grh.next_hdr, 0x1b);
  EXPECT_EQ(grh.hop_limit, 9);
  EXPECT_EQ(std::memcmp(&grh.sgid, &path.source, 16), 0);
  EXPECT_EQ(std::memcmp(&grh.dgid, &path.destination, 16), 0);
}

TEST_F(RoutingHeader, OfRoceV2BetweenIpv6AddressesHasUdpBehindIt) {
  write(path_between("fe80::1", "fe80::2", true));
  EXPECT_EQ(grh.next_hdr, 17);
  EXPECT_EQ(ntohs(grh.paylen), kPayload + 24 + 8);
}

TEST_F(RoutingHeader, OfRoceV2BetweenIpv4AddressesIsThatOfIpv4InTheLastTwentyBytes) {
  write(path_between("::ffff:198.18.0.1", "::ffff:198.18.0.2", true));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(bytes[i], 0) << i;
  const unsigned char* const ip = bytes + 20;
  EXPECT_EQ(ip[0], 0x45);
  EXPECT_EQ(ip[1], kClass);
  EXPECT_EQ(ip[2] << 8 | ip[3], static_cast<int>(kPayload) + 24 + 28);
  EXPECT_EQ(ip[8], 9);
  EXPECT_EQ(ip[9], 17);
  const unsigned char addresses[] = {198, 18, 0, 1, 198, 18, 0, 2};
  EXPECT_EQ(std::memcmp(ip + 12, addresses, 8), 0);
  std::uint32_t sum = 0;
  for (int i = 0; i < 20; i += 2) sum += static_cast<std::uint32_t>(ip[i] << 8 | ip[i + 1]);
  EXPECT_EQ((sum & 0xffff) + (sum >> 16), 0xffffu) << "RFC 791: with its checksum it is all ones";
}

TEST_F(RoutingHeader, BetweenMappedAddressesIsNotThatOfIpv4BeforeRoceV2) {
  write(path_between("::ffff:198.18.0.1", "::ffff:198.18.0.2", false));
  EXPECT_EQ(grh.next_hdr, 0x1b);
}

TEST_F(RoutingHeader, OfOneMappedAddressAloneIsThatOfIpv6) {
  write(path_between("::ffff:198.18.0.1", "fe80::2", true));
  EXPECT_EQ(ntohl(grh.version_tclass_flow) >> 28, 6u);
}

TEST(CarriedQkey, IsTheQueuePairsOwnWhenTheHighBitAsksForIt) {
  EXPECT_EQ(carried_qkey(0x11111111, 0x22), 0x11111111u);
  EXPECT_EQ(carried_qkey(0x80000000, 0x22), 0x22u);
  EXPECT_EQ(carried_qkey(0xffffffff, 0x22), 0x22u);
}

}  // namespace
}  // namespace verbatim
