// SPDX-License-Identifier: BSD-2-Clause
// The 52 bytes in which pingpong programs tell each other where they are.
#include "perf/cli/qp_address.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace verbatim::cli {
namespace {

constexpr char kWire[] = "beef:00abcd:123456:fe800000000000000002c903000a0b0c";
static_assert(sizeof(kWire) == kQpAddressSize);

QpAddress sample() {
  QpAddress address{0xbeef, 0xabcd, 0x123456, {}};
  constexpr unsigned char kGid[] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0xc9, 3, 0, 0xa, 0xb, 0xc};
  std::memcpy(address.gid.raw, kGid, sizeof(kGid));
  return address;
}

std::optional<QpAddress> decoded(const std::string& text) {
  QpAddressBytes bytes{};
  EXPECT_LE(text.size(), bytes.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return decode(bytes);
}

TEST(QpAddress, IsWrittenAsTheClassicToolsWriteIt) {
  const QpAddressBytes bytes = encode(sample());
  EXPECT_EQ(std::string(bytes.data(), bytes.size()), std::string(kWire, sizeof(kWire)));
}

TEST(QpAddress, ComesBackAsItWas) {
  const auto address = decoded(kWire);
  ASSERT_TRUE(address);
  EXPECT_EQ(address->lid, 0xbeef);
  EXPECT_EQ(address->qpn, 0xabcdu);
  EXPECT_EQ(address->psn, 0x123456u);
  EXPECT_EQ(std::memcmp(address->gid.raw, sample().gid.raw, 16), 0);
}

TEST(QpAddress, TakesEitherCaseOfHexDigits) {
  EXPECT_TRUE(decoded("BEEF:00ABCD:123456:FE800000000000000002C903000A0B0C"));
}

TEST(QpAddress, KeepsItsLengthWhateverTheNumbers) {
  const QpAddressBytes bytes = encode({0xffff, 0xffffffff, 0xffffffff, {}});
  EXPECT_EQ(std::string(bytes.data()), "ffff:ffffff:ffffff:" + std::string(32, '0'));
}

TEST(QpAddress, IsPrintedAsTheClassicToolsPrintIt) {
  EXPECT_EQ(text(sample()), "LID 0xbeef, QPN 0x00abcd, PSN 0x123456, GID fe80::2:c903:a:b0c");
  EXPECT_EQ(text(QpAddress{}), "LID 0x0000, QPN 0x000000, PSN 0x000000, GID ::");
}

TEST(QpAddress, RefusesEverythingElse) {
  EXPECT_FALSE(decoded(""));
  EXPECT_FALSE(decoded("GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n"));
  std::string long_one(kWire);
  long_one += 'x';  // where the NUL belongs
  EXPECT_FALSE(decoded(long_one));
  for (std::size_t i = 0; i + 1 < kQpAddressSize; ++i) {  // each byte matters
    for (const char wrong : {'g', ' ', '-', '+', 'x', '\0', ';', '\xff'}) {
      std::string text(kWire);
      text[i] = wrong;
      EXPECT_FALSE(decoded(text)) << "byte " << i << " is " << static_cast<int>(wrong);
    }
  }
}

}  // namespace
}  // namespace verbatim::cli
