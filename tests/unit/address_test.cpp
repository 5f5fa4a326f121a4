// SPDX-License-Identifier: BSD-2-Clause
// The way back to a sender, from a completion and the header in front of its data.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "runtime/verbs/handles.hpp"
#include "tests/support/fake_kernel.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit/opened_device.hpp"

namespace verbatim::unit {
namespace {

ibv_gid parse(const char* text) {
  ibv_gid gid;
  EXPECT_EQ(::inet_pton(AF_INET6, text, &gid), 1) << text;
  return gid;
}

bool same(const ibv_gid& a, const ibv_gid& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

using AddressOnInfiniBand = OpenedDevice;

TEST_F(AddressOnInfiniBand, WithoutAHeaderIsLocal) {
  ibv_wc wc{};
  wc.slid = 0x1234;
  wc.sl = 3;
  wc.dlid_path_bits = 5;
  ibv_ah_attr path;
  ASSERT_EQ(ibv_init_ah_from_wc(context, 1, &wc, nullptr, &path), 0);
  EXPECT_EQ(path.dlid, 0x1234);
  EXPECT_EQ(path.sl, 3);
  EXPECT_EQ(path.src_path_bits, 5);
  EXPECT_EQ(path.port_num, 1);
  EXPECT_EQ(path.is_global, 0);
  ibv_ah* const ah = ibv_create_ah_from_wc(pd, &wc, nullptr, 1);
  ASSERT_NE(ah, nullptr);
  EXPECT_EQ(Ah::from(ah).attr.dlid, 0x1234);
  EXPECT_EQ(ibv_destroy_ah(ah), 0);
}

TEST_F(AddressOnInfiniBand, WithAHeaderIsGlobal) {
  ibv_wc wc{};
  wc.wc_flags = IBV_WC_GRH;
  ibv_grh grh{};
  grh.version_tclass_flow = htonl(6u << 28 | 0x42u << 20 | 0xabcde);
  grh.hop_limit = 64;
  grh.sgid = parse("fe80::99");
  grh.dgid = parse("fe80::1");  // null0's only GID
  ibv_ah_attr path;
  ASSERT_EQ(ibv_init_ah_from_wc(context, 1, &wc, &grh, &path), 0);
  EXPECT_EQ(path.is_global, 1);
  EXPECT_TRUE(same(path.grh.dgid, grh.sgid));
  EXPECT_EQ(path.grh.sgid_index, 0);
  EXPECT_EQ(path.grh.flow_label, 0xabcdeu);
  EXPECT_EQ(path.grh.traffic_class, 0x42);
  EXPECT_EQ(path.grh.hop_limit, 64);
}

TEST_F(AddressOnInfiniBand, AForeignDestinationIsRefused) {
  ibv_wc wc{};
  wc.wc_flags = IBV_WC_GRH;
  ibv_grh grh{};
  grh.version_tclass_flow = htonl(6u << 28);
  grh.dgid = parse("fe80::2");
  ibv_ah_attr path;
  const CapturedStderr captured;
  EXPECT_EQ(ibv_init_ah_from_wc(context, 1, &wc, &grh, &path), -1);
  EXPECT_EQ(ibv_create_ah_from_wc(pd, &wc, &grh, 1), nullptr);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(ibv_init_ah_from_wc(context, 1, &wc, nullptr, &path), -1);
  EXPECT_EQ(ibv_init_ah_from_wc(context, 9, &wc, &grh, &path), -1);
}

class AddressOnEthernet : public OpenedDevice {
 protected:
  AddressOnEthernet() : OpenedDevice("fakek0") {}
  void SetUp() override {
    OpenedDevice::SetUp();
    fake::Kernel::instance().set_gids({parse("fe80::1"), parse("::ffff:10.0.0.2")});
  }
};

TEST_F(AddressOnEthernet, AnIpv4HeaderMakesAMappedGid) {
  unsigned char header[40] = {};
  unsigned char* const ipv4 = header + 20;
  ipv4[0] = 0x45;
  ipv4[1] = 0x20;
  ipv4[8] = 63;
  ::inet_pton(AF_INET, "10.0.0.9", ipv4 + 12);
  ::inet_pton(AF_INET, "10.0.0.2", ipv4 + 16);
  ibv_grh grh;
  std::memcpy(&grh, header, sizeof grh);
  ibv_wc wc{};
  wc.wc_flags = IBV_WC_GRH;
  ibv_ah_attr path;
  ASSERT_EQ(ibv_init_ah_from_wc(context, 1, &wc, &grh, &path), 0);
  EXPECT_TRUE(same(path.grh.dgid, parse("::ffff:10.0.0.9")));
  EXPECT_EQ(path.grh.sgid_index, 1);
  EXPECT_EQ(path.grh.hop_limit, 63);
  EXPECT_EQ(path.grh.traffic_class, 0x20);
}

TEST_F(AddressOnEthernet, TheHeaderTellsTheGidsType) {
  ibv_grh grh{};
  grh.version_tclass_flow = htonl(6u << 28);
  grh.next_hdr = 17;
  grh.sgid = parse("fe80::7");
  grh.dgid = parse("fe80::1");
  ibv_wc wc{};
  wc.wc_flags = IBV_WC_GRH;
  ibv_ah_attr path;
  EXPECT_EQ(ibv_init_ah_from_wc(context, 1, &wc, &grh, &path), 0);
  const CapturedStderr captured;
  grh.next_hdr = 0x1b;  // RoCE v1, of which this port has no GID
  EXPECT_EQ(ibv_init_ah_from_wc(context, 1, &wc, &grh, &path), -1);
  wc.wc_flags = 0;
  EXPECT_EQ(ibv_init_ah_from_wc(context, 1, &wc, nullptr, &path), -1) << "RoCE has no local routes";
}

TEST_F(AddressOnEthernet, MacsComeFromGids) {
  ibv_ah_attr attr{};
  std::uint8_t mac[6];
  std::uint16_t vlan = 0;
  const auto resolved = [&](const char* gid) {
    attr.grh.dgid = parse(gid);
    EXPECT_EQ(ibv_resolve_eth_l2_from_gid(context, &attr, mac, &vlan), 0) << gid;
    char text[18];
    std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
                  mac[3], mac[4], mac[5]);
    return std::string(text);
  };
  EXPECT_EQ(resolved("fe80::0211:22ff:fe33:4455"), "00:11:22:33:44:55");
  EXPECT_EQ(vlan, 0xffff);
  EXPECT_EQ(resolved("fe80::0211:2200:6433:4455"), "00:11:22:33:44:55");
  EXPECT_EQ(vlan, 100);
  EXPECT_EQ(resolved("ff0e::1:2:3"), "33:33:00:02:00:03");
  EXPECT_EQ(resolved("ff0e::ffff:239.129.2.3"), "01:00:5e:01:02:03");
  attr.grh.dgid = parse("2001::1");
  const CapturedStderr captured;
  EXPECT_EQ(ibv_resolve_eth_l2_from_gid(context, &attr, mac, &vlan), EOPNOTSUPP);
}

}  // namespace
}  // namespace verbatim::unit
