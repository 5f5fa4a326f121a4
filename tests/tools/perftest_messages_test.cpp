// SPDX-License-Identifier: BSD-2-Clause
// What perftest programs write to each other, byte by byte.
#include "perf/cli/perftest_messages.hpp"

#include <gtest/gtest.h>

#include <string>

namespace verbatim::cli {
namespace {

// As Debian's ib_write_bw has written them.
const std::string kPlain("0001:0001:51c000:c3684e:00000101:00007fecf239c000:00000000", 59);
const std::string kWithGid(
    "0001:0010:a1e000:f34c5a:00000101:00007f46cb4d8000:"
    "fe:80:00:00:00:00:00:00:de:ed:84:49:d9:2a:f5:01:0000002a:",
    108);

std::optional<PerftestAddress> address_in(const std::string& bytes) {
  return decode_perftest_address(std::span(bytes.data(), bytes.size()));
}

TEST(PerftestAddress, IsReadAndWrittenAsByPerftest) {
  const auto address = address_in(kPlain);
  ASSERT_TRUE(address);
  EXPECT_EQ(address->qp.lid, 1);
  EXPECT_EQ(address->qp.qpn, 0x51c000u);
  EXPECT_EQ(address->qp.psn, 0xc3684eu);
  EXPECT_EQ(address->rkey, 0x101u);
  EXPECT_EQ(address->memory, 0x7fecf239c000u);
  EXPECT_EQ(encode(*address, false), kPlain);
}

TEST(PerftestAddress, HasItsGidByteByByte) {
  const auto address = address_in(kWithGid);
  ASSERT_TRUE(address);
  EXPECT_EQ(address->reads, 16u);
  EXPECT_EQ(address->srqn, 42u);
  EXPECT_EQ(address->qp.gid.raw[0], 0xfe);
  EXPECT_EQ(address->qp.gid.raw[15], 0x01);
  EXPECT_EQ(encode(*address, true), kWithGid);
}

TEST(PerftestAddress, KeepsItsLengthWhateverIsInIt) {
  PerftestAddress address;
  address.reads = address.qp.qpn = address.qp.psn = address.rkey = address.srqn = UINT32_MAX;
  address.qp.lid = UINT16_MAX;
  address.memory = UINT64_MAX;
  EXPECT_EQ(encode(address, false).size(), kPerftestAddressSize);
  EXPECT_EQ(encode(address, true).size(), kPerftestAddressSizeWithGid);
}

TEST(PerftestAddress, IsNothingWithAnyByteOfItsFrameWrong) {
  for (const std::string& sound : {kPlain, kWithGid}) {
    for (std::size_t at = 0; at < sound.size(); ++at) {
      std::string wrong = sound;
      wrong[at] = '!';
      EXPECT_FALSE(address_in(wrong)) << at;
    }
    EXPECT_FALSE(address_in(sound.substr(1)));
  }
  EXPECT_FALSE(address_in(""));
}

TEST(PerftestVersion, SaysWhatOursRunsBehindTheNumber) {
  PerfIdentity identity;
  identity.test = {PerfVerb::kAtomic, PerfMeasure::kBandwidth};
  identity.connection = PerfConnection::kXrc;
  identity.bidirectional = identity.gid = true;
  identity.queue_pairs = 16384;
  identity.size = 8388608;
  identity.iterations = fold_iterations(100'000'000);
  const PerftestVersion version = encode(identity);
  EXPECT_STREQ(version.data(), "6.06");
  EXPECT_DOUBLE_EQ(version_number(version), 6.06);
  const auto read = decode_identity(version);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->words(), "atomic-bw -c XRC -s 8388608 -q 16384 -b -x ...");
  EXPECT_EQ(read->iterations, identity.iterations);
}

TEST(PerftestVersion, IsReadWhateverAStrangerSends) {
  PerftestVersion version{};
  EXPECT_FALSE(decode_identity(version));
  EXPECT_EQ(version_number(version), 0);
  version.fill('9');
  EXPECT_FALSE(decode_identity(version));
  EXPECT_GT(version_number(version), 1e15);
  version = {'6', '.', '2', '8'};
  EXPECT_FALSE(decode_identity(version));
  EXPECT_DOUBLE_EQ(version_number(version), 6.28);
  version.fill('\xff');
  version[4] = '\0';
  version[5] = 'V';
  ASSERT_TRUE(decode_identity(version));
  EXPECT_FALSE(decode_identity(version)->words().empty());
}

TEST(PerftestNumber, HasItsMostSignificantByteFirst) {
  EXPECT_EQ(encode_number(0x01020304), (PerftestNumber{1, 2, 3, 4}));
  EXPECT_EQ(decode_number({'\x80', 0, 0, 1}), 0x80000001u);
  EXPECT_EQ(decode_value(encode_value(0x8001020304050607)), 0x8001020304050607u);
}

}  // namespace
}  // namespace verbatim::cli
