// SPDX-License-Identifier: BSD-2-Clause
// How nodes are said, by a user or a launcher, and what is known of them then.
#include "mpi_shim/core/nodes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace vmpi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int> listed(const Array<int>& numbers) { return {numbers.begin(), numbers.end()}; }

std::string refusal_of(const char* text, int ranks) {
  Array<int> numbers;
  char wrong[256] = "";
  const char* const refused = parse_nodes(text, ranks, numbers, wrong);
  return refused != nullptr ? refused : "";
}

TEST(Nodes, AreListsOfRanks) {
  Array<int> numbers;
  char wrong[256];
  ASSERT_EQ(parse_nodes("0-2:3", 4, numbers, wrong), nullptr);
  EXPECT_THAT(listed(numbers), ElementsAre(0, 0, 0, 1));
  ASSERT_EQ(parse_nodes("3,0-1:2,4", 5, numbers, wrong), nullptr);
  EXPECT_THAT(listed(numbers), ElementsAre(0, 0, 1, 0, 1));
}

TEST(Nodes, OfEachRankOneIsNamed) {
  EXPECT_THAT(refusal_of("0-2", 4), HasSubstr("names no node of rank 3"));
  EXPECT_THAT(refusal_of("0-2:2-3", 4), HasSubstr("names rank 2 twice"));
  EXPECT_THAT(refusal_of("0-4", 4), HasSubstr("names a rank 4 that is none"));
  EXPECT_THAT(refusal_of("2-1:0", 3), HasSubstr("from rank 2 ends before it begins"));
  EXPECT_THAT(refusal_of("0-:1", 2), HasSubstr("from rank 0 has no end"));
  EXPECT_THAT(refusal_of("0;1", 2), HasSubstr("neither ',' nor ':' follows rank 0"));
  for (const char* const text : {"x", "0:", "0,", ":0", "0::1", "-1", "0-99999999999999999999"})
    EXPECT_NE(refusal_of(text, 2), "") << text;
}

TEST(GroupsOfCaches, AreListsOfRanksWithASlashBetweenNumaNodes) {
  Array<int> groups;
  Array<int> nodes;
  char wrong[256] = "";
  ASSERT_EQ(parse_groups("0-1:2-3/4,6:5", 7, groups, nodes, wrong), nullptr);
  EXPECT_THAT(listed(groups), ElementsAre(0, 0, 1, 1, 2, 3, 2));
  EXPECT_THAT(listed(nodes), ElementsAre(0, 0, 0, 0, 1, 1, 1));
  ASSERT_EQ(parse_groups("1,0", 2, groups, nodes, wrong), nullptr);
  EXPECT_THAT(listed(groups), ElementsAre(0, 0));
}

TEST(GroupsOfCaches, OfEachRankOneIsNamed) {
  Array<int> groups;
  Array<int> nodes;
  char wrong[256] = "";
  const auto refusal = [&](const char* text, int ranks) -> std::string {
    const char* const refused = parse_groups(text, ranks, groups, nodes, wrong);
    return refused != nullptr ? refused : "";
  };
  EXPECT_THAT(refusal("0-1/2", 4), HasSubstr("VERBATIM_MPI_GROUPS is \"0-1/2\", which names no "
                                             "group of rank 3 (of 4 ranks; \"0-1:2-3/4-7\" are"));
  EXPECT_THAT(refusal("0/0-1", 2), HasSubstr("names rank 0 twice"));
  EXPECT_THAT(refusal("0;1", 2), HasSubstr("neither ',' nor ':' nor '/' follows rank 0"));
  for (const char* const text : {"x", "/0-1", "0-1/", "0//1", "0:/1", "0/:1", "0-9", "1-0"})
    EXPECT_NE(refusal(text, 2), "") << text;
  // Nodes of several hosts have no slash.
  EXPECT_THAT(refusal_of("0/1", 2), HasSubstr("neither ',' nor ':' follows rank 0"));
}

TEST(Nodes, AreSaidByALaunchersVector) {
  Array<int> numbers;
  ASSERT_TRUE(parse_process_mapping("(vector,(0,2,2))", 4, numbers));
  EXPECT_THAT(listed(numbers), ElementsAre(0, 0, 1, 1));
  ASSERT_TRUE(parse_process_mapping("(vector,(0,1,3),(1,1,1))", 4, numbers));
  EXPECT_THAT(listed(numbers), ElementsAre(0, 0, 0, 1));
  // It begins again where ranks are left.
  ASSERT_TRUE(parse_process_mapping("(vector,(0,2,1))", 5, numbers));
  EXPECT_THAT(listed(numbers), ElementsAre(0, 1, 0, 1, 0));
  // A launcher may list all that it could use.
  ASSERT_TRUE(parse_process_mapping("(vector,(0,9,1))", 4, numbers));
  EXPECT_THAT(listed(numbers), ElementsAre(0, 1, 2, 3));
}

TEST(Nodes, AreNotSaidByAnythingElse) {
  Array<int> numbers;
  for (const char* const text :
       {"", "(vector", "(vector,", "(vector,)", "(vector,(0,1,0))", "(vector,(0,0,4))",
        "(vector,(0,1))", "(vector,(9,1,4))", "(vector,(1,9,1))", "(vector,(-1,1,4))",
        "(vector,(0,1,1)", "(vector,(0,1,1),", "(matrix,(0,1,4))", "(vector,(2147483648,1,1))"})
    EXPECT_FALSE(parse_process_mapping(text, 4, numbers)) << text;
}

TEST(Nodes, AreNumberedByTheirFirstRanks) {
  const int numbers[] = {4, 1, 4, 1, 4};
  Nodes nodes;
  ASSERT_TRUE(nodes.set(numbers, 5));
  EXPECT_EQ(nodes.count(), 2);
  EXPECT_THAT(nodes.ranks_of(0), ElementsAre(0, 2, 4));
  EXPECT_THAT(nodes.ranks_of(1), ElementsAre(1, 3));
  EXPECT_EQ(nodes.place_of(4), 2);
  EXPECT_EQ(nodes.fewest(), 2);
  EXPECT_TRUE(nodes.are_composed());
  EXPECT_TRUE(nodes.are_alike());
  EXPECT_FALSE(nodes.are_in_order());
}

TEST(Nodes, AreNothingToComposeOfOneOrOfOneRankEach) {
  Nodes nodes;
  const int one[] = {0, 0, 0};
  ASSERT_TRUE(nodes.set(one, 3));
  EXPECT_FALSE(nodes.are_composed());
  const int each[] = {0, 1, 2};
  ASSERT_TRUE(nodes.set(each, 3));
  EXPECT_FALSE(nodes.are_composed());
}

}  // namespace
}  // namespace vmpi
