// SPDX-License-Identifier: BSD-2-Clause
// Which ranks of a host are grouped, by what each says of where it runs, and when that pays.
#include "mpi_shim/coll/host_groups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "mpi_shim/coll/select.hpp"

namespace vmpi {
namespace {

using ::testing::ElementsAre;
using Places = std::vector<HostPlace>;

struct Drop {
  void operator()(HostGroups* groups) const { HostGroups::drop(groups); }
};
std::unique_ptr<HostGroups, Drop> found_in(const Places& places) {
  HostGroups* groups = nullptr;
  EXPECT_TRUE(
      HostGroups::find(places.data(), static_cast<int>(places.size()), built_in_costs(), groups));
  return std::unique_ptr<HostGroups, Drop>(groups);
}
/// `ranks` of them in caches of `each`, nodes of `caches` of these.
Places places(int ranks, int each, int caches, std::uint32_t is_declared = 0) {
  Places made;
  for (int i = 0; i < ranks; ++i)
    made.push_back({static_cast<std::uint32_t>(i / each / caches),
                    static_cast<std::uint32_t>(i / each), is_declared});
  return made;
}

TEST(HostGroups, AreOfThoseWhoShareACache) {
  Places mixed = places(8, 4, 2);
  std::swap(mixed[1], mixed[6]);
  const auto groups = found_in(mixed);
  ASSERT_NE(groups, nullptr);
  EXPECT_THAT(groups->groups.ranks_of(0), ElementsAre(0, 2, 3, 6));
  EXPECT_THAT(groups->groups.ranks_of(1), ElementsAre(1, 4, 5, 7));
  EXPECT_EQ(groups->nodes.count(), 2);
}

TEST(HostGroups, AreNoneWhereRanksMayRunAnywhere) {
  EXPECT_EQ(found_in(Places(16)), nullptr);
  // Who is bound is one group, who is not another.
  Places some = places(16, 8, 1);
  for (int i = 8; i < 16; ++i) some[static_cast<std::size_t>(i)] = {};
  const auto groups = found_in(some);
  ASSERT_NE(groups, nullptr);
  EXPECT_EQ(groups->groups.count(), 2);
}

TEST(HostGroups, AreNoneOfOneCacheNorOfRanksThatAreAlone) {
  EXPECT_EQ(found_in(places(16, 16, 1)), nullptr);
  EXPECT_EQ(found_in(places(16, 1, 4)), nullptr);
  EXPECT_EQ(found_in(places(4, 1, 1, 1)), nullptr);
}

TEST(HostGroups, AreThoseThatAreDeclaredAlsoWhereTheyDoNotPay) {
  EXPECT_EQ(found_in(places(4, 2, 2)), nullptr);
  EXPECT_NE(found_in(places(4, 2, 2, 1)), nullptr);
  // But only if all ranks say so.
  Places one_without = places(4, 2, 2, 1);
  one_without[3].is_declared = 0;
  EXPECT_EQ(found_in(one_without), nullptr);
}

TEST(HostGroups, HaveLeadersOfNodesWhereTheseAreFewerThanCaches) {
  const auto many = found_in(places(64, 4, 4));
  ASSERT_NE(many, nullptr);
  EXPECT_EQ(many->groups.count(), 16);
  EXPECT_EQ(many->nodes.count(), 4);
  // Leaders of four caches hear each other as soon as by two more levels.
  const auto few = found_in(places(16, 4, 2));
  ASSERT_NE(few, nullptr);
  EXPECT_EQ(few->nodes.count(), 4);
  EXPECT_EQ(found_in(places(16, 4, 2, 1))->nodes.count(), 2);
}

TEST(HostGroups, PayWhereMostLinesComeFromOtherCaches) {
  const auto levels = [](int ranks, int groups, int largest) {
    return levels_for({.ranks = ranks, .groups = groups, .largest_group = largest});
  };
  EXPECT_EQ(levels(8, 2, 4), HostLevels::kCaches);
  EXPECT_EQ(levels(6, 3, 2), HostLevels::kCaches);
  EXPECT_EQ(levels(4, 2, 2), HostLevels::kFlat);
  EXPECT_EQ(levels(9, 2, 8), HostLevels::kFlat);
  EXPECT_EQ(levels(64, 1, 64), HostLevels::kFlat);
  EXPECT_FALSE(HostGroups::can_be(kLeastRanksOfGroups - 1));
}

/// By this all ranks know that they have heard the same.
TEST(HostGroups, HaveADigestThatTellsThemApart) {
  Places said = places(8, 4, 1);
  const std::uint32_t digest = HostGroups::digest_of(said.data(), 8);
  EXPECT_EQ(HostGroups::digest_of(said.data(), 8), digest);
  for (std::uint32_t HostPlace::*part :
       {&HostPlace::node, &HostPlace::cache, &HostPlace::is_declared}) {
    Places other = said;
    other[5].*part ^= 2;
    EXPECT_NE(HostGroups::digest_of(other.data(), 8), digest);
  }
}

}  // namespace
}  // namespace vmpi
