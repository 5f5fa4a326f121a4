// SPDX-License-Identifier: BSD-2-Clause
// Set operations of groups and the choice of a grid, in a world that needs no ranks.
#include "mpi_shim/core/groups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "mpi_shim/core/cartesian.hpp"
#include "mpi_shim/core/world.hpp"

namespace vmpi {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Groups : public ::testing::Test {
 protected:
  Groups() {
    world.size = 10;
    world.rank = 3;
    EXPECT_TRUE(make_predefined_groups());
  }
  ~Groups() override {
    drop_all_groups();
    world.size = 1;
    world.rank = 0;
  }
  static Group& of(const std::vector<int>& members) {
    return *make_group(members.data(), members.size());
  }
  static std::vector<int> members(const Group* group) {
    return {group->members.begin(), group->members.end()};
  }
};

TEST_F(Groups, UnionKeepsTheOrderOfTheFirst) {
  EXPECT_THAT(members(unite(of({5, 3, 1}), of({1, 2, 3, 4}))), ElementsAre(5, 3, 1, 2, 4));
}
TEST_F(Groups, IntersectionAndDifferenceKeepTheOrderOfTheFirst) {
  EXPECT_THAT(members(intersect(of({5, 3, 1}), of({1, 2, 3, 4}))), ElementsAre(3, 1));
  EXPECT_THAT(members(subtract(of({5, 3, 1}), of({1, 2, 3, 4}))), ElementsAre(5));
}
TEST_F(Groups, WhatIsEmptyIsTheEmptyGroup) {
  EXPECT_EQ(subtract(of({1, 2}), of({2, 1})), find_group(MPI_GROUP_EMPTY));
  EXPECT_THAT(members(find_group(MPI_GROUP_EMPTY)), IsEmpty());
}
TEST_F(Groups, KnowThisProcesssRank) {
  EXPECT_EQ(of({7, 3}).rank, 1);
  EXPECT_EQ(of({7, 4}).rank, MPI_UNDEFINED);
}
TEST_F(Groups, AreComparedByMembersAndOrder) {
  EXPECT_EQ(compare_groups(of({1, 2}), of({1, 2})), MPI_IDENT);
  EXPECT_EQ(compare_groups(of({1, 2}), of({2, 1})), MPI_SIMILAR);
  EXPECT_EQ(compare_groups(of({1, 2}), of({1, 3})), MPI_UNEQUAL);
  EXPECT_EQ(compare_groups(of({1, 2}), of({1})), MPI_UNEQUAL);
}
TEST_F(Groups, IncludeAndExcludeByRank) {
  const std::vector<int> ranks{2, 0};
  EXPECT_THAT(members(include(of({9, 8, 7}), ranks.data(), 2)), ElementsAre(7, 9));
  EXPECT_THAT(members(exclude(of({9, 8, 7}), ranks.data(), 2)), ElementsAre(8));
}
TEST_F(Groups, RangesCountUpAndDown) {
  const int ranges[2][3] = {{6, 7, 1}, {4, 0, -2}};
  Array<int> ranks;
  EXPECT_EQ(expand_ranges(ranges, 2, 10, ranks), MPI_SUCCESS);
  EXPECT_THAT(std::vector<int>(ranks.begin(), ranks.end()), ElementsAre(6, 7, 4, 2, 0));
  const int still[1][3] = {{1, 2, 0}};
  EXPECT_EQ(expand_ranges(still, 1, 10, ranks), MPI_ERR_ARG);
  const int beyond[1][3] = {{1, 10, 1}};
  EXPECT_EQ(expand_ranges(beyond, 1, 10, ranks), MPI_ERR_RANK);
  const int fast[1][3] = {{0, 9, 2147483647}};
  ranks.clear();
  EXPECT_EQ(expand_ranges(fast, 1, 10, ranks), MPI_SUCCESS);
  EXPECT_EQ(ranks.size(), 1u);
}
TEST_F(Groups, RanksOutsideOrTwiceAreFound) {
  const std::vector<int> good{0, 3, 1}, twice{0, 3, 0}, outside{0, 4};
  EXPECT_EQ(first_bad_rank(good.data(), 3, 4), -1);
  EXPECT_EQ(first_bad_rank(twice.data(), 3, 4), 2);
  EXPECT_EQ(first_bad_rank(outside.data(), 2, 4), 1);
}

std::vector<int> dims_of(int nodes, std::vector<int> dims) {
  EXPECT_EQ(choose_dims(nodes, static_cast<int>(dims.size()), dims.data()), MPI_SUCCESS);
  return dims;
}

// The examples of MPI 5.0 section 8.5.2, and numbers that a greedy choice gets wrong.
TEST(Dims, AreAsNearToEachOtherAsCanBe) {
  EXPECT_THAT(dims_of(6, {0, 0}), ElementsAre(3, 2));
  EXPECT_THAT(dims_of(7, {0, 0}), ElementsAre(7, 1));
  EXPECT_THAT(dims_of(6, {0, 3, 0}), ElementsAre(2, 3, 1));
  EXPECT_THAT(dims_of(12, {0, 0}), ElementsAre(4, 3));
  EXPECT_THAT(dims_of(36, {0, 0, 0}), ElementsAre(4, 3, 3));
  EXPECT_THAT(dims_of(1, {0, 0, 0}), ElementsAre(1, 1, 1));
  EXPECT_THAT(dims_of(2, {0, 0, 0}), ElementsAre(2, 1, 1));
  EXPECT_THAT(dims_of(1 << 20, std::vector<int>(10, 0)), ElementsAre(4, 4, 4, 4, 4, 4, 4, 4, 4, 4));
  EXPECT_THAT(dims_of(2147483647, {0, 0}), ElementsAre(2147483647, 1));
  EXPECT_EQ(dims_of(8, std::vector<int>(50, 0))[2], 2);
}
TEST(Dims, ThatDoNotDivideAreRefused) {
  int five[] = {5, 0};
  EXPECT_EQ(choose_dims(6, 2, five), MPI_ERR_DIMS);
  int all[] = {2, 2};
  EXPECT_EQ(choose_dims(6, 2, all), MPI_ERR_DIMS);
  int negative[] = {-1, 0};
  EXPECT_EQ(choose_dims(6, 2, negative), MPI_ERR_DIMS);
}
TEST(Dims, OfLargeNumbersAreFoundInTime) {
  EXPECT_EQ(dims_of(735134400, {0, 0, 0, 0, 0}).size(), 5u);
  EXPECT_EQ(dims_of(1 << 30, std::vector<int>(31, 0)).size(), 31u);
}

}  // namespace
}  // namespace vmpi
