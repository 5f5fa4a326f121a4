// SPDX-License-Identifier: BSD-2-Clause
// Membership in multicast groups.
#include "runtime/verbs/software/group_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace verbatim {
namespace {

ibv_gid group(std::uint8_t last) {
  ibv_gid gid{};
  gid.raw[0] = 0xff;
  gid.raw[15] = last;
  return gid;
}

class Groups : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kPlaces = 4, kMost = 3;
  Joined join(std::uint32_t qpn, const ibv_gid& gid) { return table_.join(qpn, gid, kMost); }
  std::vector<std::uint32_t> members(const ibv_gid& gid) const {
    std::vector<std::uint32_t> found;
    each_member(records_, end_.load(), gid, [&](std::uint32_t qpn) {
      found.push_back(qpn);
      return true;
    });
    std::sort(found.begin(), found.end());
    return found;
  }
  using Qpns = std::vector<std::uint32_t>;

  GroupMembership records_[kPlaces];
  std::atomic<std::uint32_t> end_{0};
  GroupTable<GroupMembership> table_{records_, kPlaces, end_};
};

TEST_F(Groups, HaveTheMembersThatJoined) {
  EXPECT_EQ(join(1, group(1)), Joined::kJoined);
  EXPECT_EQ(join(2, group(1)), Joined::kJoined);
  EXPECT_EQ(join(1, group(2)), Joined::kJoined);
  EXPECT_EQ(members(group(1)), (Qpns{1, 2}));
  EXPECT_EQ(members(group(2)), (Qpns{1}));
  EXPECT_EQ(members(group(3)), (Qpns{}));
}

TEST_F(Groups, AreJoinedOnce) {
  EXPECT_EQ(join(1, group(1)), Joined::kJoined);
  EXPECT_EQ(join(1, group(1)), Joined::kAlready);
  EXPECT_EQ(members(group(1)), (Qpns{1}));
}

TEST_F(Groups, AreLeftByWhoIsInThem) {
  EXPECT_EQ(join(1, group(1)), Joined::kJoined);
  EXPECT_FALSE(table_.leave(2, group(1)));
  EXPECT_FALSE(table_.leave(1, group(2)));
  EXPECT_TRUE(table_.leave(1, group(1)));
  EXPECT_FALSE(table_.leave(1, group(1)));
  EXPECT_EQ(members(group(1)), (Qpns{}));
}

TEST_F(Groups, HaveNoMoreMembersThanMayBe) {
  for (std::uint32_t qpn = 1; qpn <= kMost; ++qpn) EXPECT_EQ(join(qpn, group(1)), Joined::kJoined);
  EXPECT_EQ(join(9, group(1)), Joined::kGroupFull);
  EXPECT_EQ(join(1, group(1)), Joined::kAlready) << "it is in, however full the group is";
  EXPECT_TRUE(table_.leave(2, group(1)));
  EXPECT_EQ(join(9, group(1)), Joined::kJoined);
}

TEST_F(Groups, TakeThePlacesOfThoseWhoLeft) {
  for (std::uint8_t g = 0; g < kPlaces; ++g) EXPECT_EQ(join(1, group(g)), Joined::kJoined);
  EXPECT_EQ(join(1, group(9)), Joined::kTableFull);
  EXPECT_TRUE(table_.leave(1, group(1)));
  EXPECT_EQ(join(1, group(9)), Joined::kJoined);
  EXPECT_EQ(end_.load(), kPlaces) << "readers look at places that were used, no further";
}

TEST_F(Groups, AreLookedThroughUntilTheReaderHasEnough) {
  for (std::uint32_t qpn = 1; qpn <= 3; ++qpn) EXPECT_EQ(join(qpn, group(1)), Joined::kJoined);
  int seen = 0;
  each_member(records_, end_.load(), group(1), [&](std::uint32_t) { return ++seen < 2; });
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace verbatim
