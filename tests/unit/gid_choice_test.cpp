// SPDX-License-Identifier: BSD-2-Clause
// vbt_pick_gid: which address of a port leads where. Spec: verbatim/gid.h; RFC 4291, RFC 3927.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <verbatim/gid.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "runtime/verbs/gid_choice.hpp"
#include "tests/support/fake_kernel.hpp"
#include "tests/unit/captured_stderr.hpp"
#include "tests/unit/opened_device.hpp"

namespace verbatim::unit {
namespace {

ibv_gid gid(const char* text) {
  ibv_gid made{};
  EXPECT_EQ(::inet_pton(AF_INET6, text, &made), 1) << text;
  return made;
}

class PickGid : public OpenedDevice {
 protected:
  PickGid() : OpenedDevice("fakek0") {}

  /// The row that is picked, or minus the errno.
  int pick(const std::vector<ibv_gid>& table, const char* remote = nullptr) {
    fake::Kernel::instance().set_gids(table);
    ibv_gid to{};
    if (remote != nullptr) to = gid(remote);
    ibv_gid_entry entry{};
    const int error =
        vbt_pick_gid(context, 1, remote == nullptr ? nullptr : &to, &entry, sizeof entry);
    if (error != 0) return -error;
    EXPECT_EQ(std::memcmp(&entry.gid, &table[entry.gid_index], sizeof entry.gid), 0);
    return static_cast<int>(entry.gid_index);
  }
};

TEST_F(PickGid, PrefersRoutableToLinkLocal) {
  EXPECT_EQ(pick({gid("fe80::1"), gid("::ffff:10.0.0.1")}), 1);
  EXPECT_EQ(pick({gid("::ffff:169.254.1.1"), gid("fe80::1"), gid("2001:db8::1")}), 2);
  EXPECT_EQ(pick({gid("fe80::1"), gid("::ffff:169.254.1.1")}), 0) << "the first of equals";
  EXPECT_EQ(pick({gid("febf::1"), gid("fd00::1")}), 1) << "all of fe80::/10 is link-local";
}

TEST_F(PickGid, SkipsEmptyRows) {
  EXPECT_EQ(pick({ibv_gid{}, gid("fe80::1")}), 1);
  EXPECT_EQ(pick({ibv_gid{}, ibv_gid{}}), -ENODATA);
  EXPECT_EQ(pick({}), -ENODATA);
}

TEST_F(PickGid, FindsTheBestOfMoreThanComeAtOnce) {
  std::vector<ibv_gid> table(200, gid("fe80::1"));
  table[190] = gid("::ffff:10.0.0.1");
  EXPECT_EQ(pick(table), 190);
  EXPECT_EQ(pick(table, "fe80::2"), 0);
  table.resize(128);
  table[127] = gid("::ffff:10.0.0.1");
  EXPECT_EQ(pick(table), 127);
}

TEST_F(PickGid, StaysInTheFamilyAndScopeOfTheRemote) {
  const std::vector<ibv_gid> table{gid("fe80::1"), gid("::ffff:10.0.0.1"), gid("2001:db8::1")};
  EXPECT_EQ(pick(table, "fe80::2"), 0);
  EXPECT_EQ(pick(table, "::ffff:10.9.9.9"), 1);
  EXPECT_EQ(pick(table, "2001:db8:9::2"), 2);
  EXPECT_EQ(pick({table[0], table[1]}, "2001:db8::2"), -ENODATA);
  EXPECT_EQ(pick({table[1]}, "::ffff:169.254.0.1"), -ENODATA);
}

TEST_F(PickGid, TakesTheNearestNetwork) {
  EXPECT_EQ(pick({gid("::ffff:10.0.0.1"), gid("::ffff:192.168.7.1"), gid("::ffff:192.168.8.1")},
                 "::ffff:192.168.8.200"),
            2);
}

TEST(GidWorth, OfVersion2IsAboveEverythingOfVersion1) {
  ibv_gid_entry version2{};
  version2.gid = gid("fe80::1");
  version2.gid_type = IBV_GID_TYPE_ROCE_V2;
  ibv_gid_entry version1{};
  version1.gid = gid("2001:db8::1");
  version1.gid_type = IBV_GID_TYPE_ROCE_V1;
  EXPECT_GT(worth_of(version2, nullptr), worth_of(version1, nullptr));
}

// The default subnet prefix of InfiniBand is link-local in form; other prefixes are routed to.
TEST(GidWorth, OfInfinibandDoesNotKnowScopes) {
  ibv_gid_entry entry{};
  entry.gid = gid("fe80::2:c903:0:1");
  entry.gid_type = IBV_GID_TYPE_IB;
  const ibv_gid remote = gid("fec0::2:c903:0:2");
  EXPECT_NE(worth_of(entry, &remote), 0u);
}

TEST_F(PickGid, WritesNoMoreThanTheCallerHas) {
  fake::Kernel::instance().set_gids({gid("fe80::1")});
  unsigned char memory[sizeof(ibv_gid_entry) + 8];
  std::memset(memory, 0xaa, sizeof memory);
  auto* const entry = reinterpret_cast<ibv_gid_entry*>(memory);
  ASSERT_EQ(vbt_pick_gid(context, 1, nullptr, entry, 24), 0);
  EXPECT_EQ(memory[15], 1);
  EXPECT_EQ(memory[24], 0xaa);
  ASSERT_EQ(vbt_pick_gid(context, 1, nullptr, entry, sizeof memory), 0);
  EXPECT_EQ(memory[sizeof(ibv_gid_entry)], 0) << "beyond what the library knows";
  EXPECT_EQ(vbt_pick_gid(context, 1, nullptr, entry, 19), EINVAL);
  EXPECT_EQ(vbt_pick_gid(context, 1, nullptr, nullptr, sizeof *entry), EINVAL);
  const CapturedStderr said;
  EXPECT_EQ(vbt_pick_gid(context, 9, nullptr, entry, sizeof *entry), EINVAL);
}

}  // namespace
}  // namespace verbatim::unit
