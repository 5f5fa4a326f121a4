// SPDX-License-Identifier: BSD-2-Clause
// Ranks that read each other's memory in collectives, one of which ends, lies, or has no memory.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "tests/mpi/ranks.hpp"

namespace verbatim::harness {
namespace {

RanksOptions options() {
  RanksOptions made;
  made.end_all_with_one = false;
  made.time_limit_ms = 10'000;
  made.environment["VERBATIM_LOG"] = "off";
  return made;
}

void expect_that_others_end(const std::vector<std::string>& arguments, int ranks,
                            const std::map<std::string, std::string>& environment = {}) {
  RanksOptions made = options();
  made.environment.insert(environment.begin(), environment.end());
  const RanksEnd end = run_ranks(ranks, VERBATIM_MPI_HOST_RANK, arguments, made);
  const std::string told =
      arguments[1] + " " + arguments[2] + " of " + std::to_string(ranks) + ": " + end.told();
  ASSERT_TRUE(end.is_in_time) << told;
  EXPECT_EQ(end.ranks[1].signal, 9) << told;
  for (int i = 0; i < ranks; ++i) {
    if (i == 1) continue;
    EXPECT_EQ(end.ranks[i].exit_status, 0) << told;
    EXPECT_LT(end.ranks[i].after_ms, 5000) << told;
  }
}

TEST(HostEnds, OneThatIsKilledEndsEachCollectiveOfTheOthers) {
  for (const char* collective :
       {"barrier", "bcast", "bcast_to", "reduce", "allreduce", "allgather", "alltoall"})
    for (const char* length : {"1", "20000"})
      expect_that_others_end({"dies", collective, length}, length[1] == '\0' ? 2 : 3);
}

TEST(HostEnds, OneThatIsKilledWhileTheyMeetEndsTheFirstCollectiveOfTheOthers) {
  for (const char* microseconds : {"1", "30", "100", "300", "1000"})
    for (const int ranks : {2, 3, 5})
      expect_that_others_end({"dies_first", "allreduce", microseconds}, ranks);
}

TEST(HostEnds, OneThatLiesHarmsNobodyButItself) {
  for (const char* lie : {"no_round", "every_length", "another_collective", "left_long_ago",
                          "never_left", "all_over"})
    for (const char* collective : {"barrier", "bcast", "allreduce"})
      expect_that_others_end({"lies", lie, collective}, 3);
}

/// The one that ends is led, leads others, or is alone between others.
constexpr const char* kGroupsOfSix[] = {"0-1:2-3/4-5", "0,2:1,3-5", "0,2:1/3-5"};

TEST(HostEnds, OneThatIsKilledEndsEachCollectiveOfGroups) {
  for (const char* collective : {"barrier", "bcast", "bcast_to", "reduce", "allreduce"})
    for (const char* groups : kGroupsOfSix)
      expect_that_others_end({"dies", collective, "1"}, 6, {{"VERBATIM_MPI_GROUPS", groups}});
}

TEST(HostEnds, OneOfAGroupThatLiesHarmsNobodyButItself) {
  for (const char* lie : {"every_length", "another_collective", "no_such_rank_is_odd",
                          "left_long_ago", "never_left", "all_over"})
    for (const char* collective : {"bcast_to", "allreduce"})
      for (const char* groups : {"0-1:2", "0:1-2"})
        expect_that_others_end({"lies", lie, collective}, 3, {{"VERBATIM_MPI_GROUPS", groups}});
}

TEST(HostEnds, OneThatHasNoBlockLeavesAllToMessages) {
  const RanksEnd end = run_ranks(3, VERBATIM_MPI_HOST_RANK, {"one_without"}, options());
  EXPECT_TRUE(end.is_success()) << end.told();
}

}  // namespace
}  // namespace verbatim::harness
