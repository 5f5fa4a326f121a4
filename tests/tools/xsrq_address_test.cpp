// SPDX-License-Identifier: BSD-2-Clause
// The 66 bytes in which XRC pingpong programs tell each other where they are.
#include "perf/cli/xsrq_address.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace verbatim::cli {
namespace {

constexpr char kXsrqWire[] = "beef:00abcd:00abce:123456:00abcc:fe800000000000000002c903000a0b0c";
static_assert(sizeof(kXsrqWire) == kXsrqAddressSize);

XsrqAddress xsrq_sample() {
  XsrqAddress address{0xbeef, 0xabcd, 0xabce, 0x123456, 0xabcc, {}};
  constexpr unsigned char kGid[] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0xc9, 3, 0, 0xa, 0xb, 0xc};
  std::memcpy(address.gid.raw, kGid, sizeof(kGid));
  return address;
}

std::optional<XsrqAddress> decoded_xsrq(const std::string& text) {
  XsrqAddressBytes bytes{};
  EXPECT_LE(text.size(), bytes.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return decode_xsrq(bytes);
}

TEST(XsrqAddress, IsWrittenAsTheClassicToolWritesIt) {
  const XsrqAddressBytes bytes = encode(xsrq_sample());
  EXPECT_EQ(std::string(bytes.data(), bytes.size()), std::string(kXsrqWire, sizeof(kXsrqWire)));
}

TEST(XsrqAddress, ComesBackAsItWas) {
  const auto address = decoded_xsrq(kXsrqWire);
  ASSERT_TRUE(address);
  EXPECT_EQ(address->lid, 0xbeef);
  EXPECT_EQ(address->target, 0xabcdu);
  EXPECT_EQ(address->initiator, 0xabceu);
  EXPECT_EQ(address->psn, 0x123456u);
  EXPECT_EQ(address->srqn, 0xabccu);
  EXPECT_EQ(std::memcmp(address->gid.raw, xsrq_sample().gid.raw, 16), 0);
}

TEST(XsrqAddress, KeepsItsLengthWhateverTheNumbers) {
  const XsrqAddressBytes bytes = encode(XsrqAddress{0xffff, ~0u, ~0u, ~0u, ~0u, {}});
  EXPECT_EQ(std::string(bytes.data()), "ffff:ffffff:ffffff:ffffff:ffffff:" + std::string(32, '0'));
}

TEST(XsrqAddress, IsPrintedAsTheClassicToolPrintsIt) {
  EXPECT_EQ(
      xsrq_sample().text(),
      "LID beef, QPN RECV 00abcd SEND 00abce, PSN 123456, SRQN 00abcc, GID fe80::2:c903:a:b0c");
}

TEST(XsrqAddress, RefusesEverythingElse) {
  EXPECT_FALSE(decoded_xsrq(""));
  std::string wire = kXsrqWire;
  for (std::size_t i = 0; i < wire.size(); ++i) {
    std::string broken = wire;
    broken[i] = 'x';
    EXPECT_FALSE(decoded_xsrq(broken)) << i;
  }
  EXPECT_FALSE(decoded_xsrq(wire + "x")) << "no NUL";
}

}  // namespace
}  // namespace verbatim::cli
