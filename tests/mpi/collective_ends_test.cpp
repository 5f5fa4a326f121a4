// SPDX-License-Identifier: BSD-2-Clause
// A rank is killed within collectives that go by messages: all the others end with an error, those
// too that wait for one which lives and has left the collective.
#include <gtest/gtest.h>

#include <string>

#include "tests/mpi/ranks.hpp"

namespace verbatim::harness {
namespace {

using Variables = std::map<std::string, std::string>;

struct Job {
  int ranks;
  int dead;
  const char* length;
  Variables environment;
};

void expect_that_others_end(const char* collective, const Job& job) {
  RanksOptions options;
  options.end_all_with_one = false;
  options.time_limit_ms = 15'000;
  options.environment = job.environment;
  options.environment["VERBATIM_LOG"] = "off";
  const RanksEnd end = run_ranks(job.ranks, VERBATIM_MPI_DYING_RANK,
                                 {collective, job.length, std::to_string(job.dead)}, options);
  const std::string told = std::string(collective) + ", length " + job.length + ", " +
                           std::to_string(job.ranks) + " ranks: " + end.told();
  ASSERT_TRUE(end.is_in_time) << told;
  for (int i = 0; i < job.ranks; ++i) {
    if (i == job.dead) {
      EXPECT_EQ(end.ranks[i].signal, 9) << told;
      continue;
    }
    EXPECT_EQ(end.ranks[i].exit_status, 0) << told;
    const std::string named = "rank " + std::to_string(i) + " of " + std::to_string(job.ranks) +
                              ": rank " + std::to_string(job.dead) + " is lost: ";
    EXPECT_NE(end.output.find(named), std::string::npos) << named << told;
  }
}

constexpr const char* kCollectives[] = {"barrier",
                                        "bcast",
                                        "gather",
                                        "gatherv",
                                        "scatter",
                                        "scatterv",
                                        "allgather",
                                        "allgatherv",
                                        "alltoall",
                                        "alltoallv",
                                        "alltoallw",
                                        "reduce",
                                        "allreduce",
                                        "reduce_scatter",
                                        "reduce_scatter_block",
                                        "scan",
                                        "exscan",
                                        "neighbor_allgather",
                                        "neighbor_alltoall"};

/// As the table chooses between hosts, where nothing is mapped.
const Job kByTable = {3, 1, "1", {{"VERBATIM_COLL_HOST", "off"}}};
/// By chains and rings, in which most wait for one that lives.
const Job kByChains = {5,
                       1,
                       "30000",
                       {{"VERBATIM_COLL_HOST", "off"},
                        {"VERBATIM_COLL_BARRIER", "tree"},
                        {"VERBATIM_COLL_BCAST", "chain"},
                        {"VERBATIM_COLL_ALLGATHER", "ring"},
                        {"VERBATIM_COLL_ALLTOALL", "pairwise"},
                        {"VERBATIM_COLL_REDUCE", "ring"},
                        {"VERBATIM_COLL_ALLREDUCE", "ring"},
                        {"VERBATIM_COLL_REDUCE_SCATTER", "pairwise"},
                        {"VERBATIM_COLL_SCAN", "linear"},
                        {"VERBATIM_COLL_EXSCAN", "linear"}}};
/// Composed over nodes: one that leads is killed.
const Job kByNodes = {8, 2, "1", {{"VERBATIM_MPI_NODES", "0-1:2-3:4-5:6-7"}}};
const Job kByNodesLong = {8, 5, "20000", {{"VERBATIM_MPI_NODES", "0-1:2-3:4-5:6-7"}}};
/// By memory of the host, in groups: one that leads its group, or a group and a NUMA node.
const Job kByGroups = {8, 2, "1", {{"VERBATIM_MPI_GROUPS", "0-1:2-3:4-5:6-7"}}};
const Job kByGroupsOfNodes = {8, 4, "1", {{"VERBATIM_MPI_GROUPS", "0-1:2-3/4-5:6-7"}}};

TEST(CollectiveEnds, OneThatIsKilledEndsEachThatGoesAsBetweenHosts) {
  for (const char* each : kCollectives) expect_that_others_end(each, kByTable);
}

TEST(CollectiveEnds, OneThatIsKilledEndsThoseWhoWaitForRanksThatHaveLeft) {
  for (const char* each : kCollectives) expect_that_others_end(each, kByChains);
}

TEST(CollectiveEnds, OneThatIsKilledEndsEachThatIsComposedOverNodes) {
  for (const char* each : {"barrier", "bcast", "allgather", "reduce", "allreduce"})
    for (const Job* job : {&kByNodes, &kByNodesLong}) expect_that_others_end(each, *job);
}

TEST(CollectiveEnds, OneThatIsKilledEndsEachThatGoesByGroups) {
  for (const char* each : {"barrier", "bcast", "reduce", "allreduce"})
    for (const Job* job : {&kByGroups, &kByGroupsOfNodes}) expect_that_others_end(each, *job);
}

TEST(CollectiveEnds, OneThatIsKilledEndsAllThatWereStarted) {
  for (const Job* job : {&kByTable, &kByChains, &kByNodes, &kByNodesLong})
    expect_that_others_end("all", *job);
}

TEST(CollectiveEnds, OneThatLeavesAfterItsPartEndsNothing) {
  // By messages, and by the memory of the host.
  expect_that_others_end("leaves", {4, 1, "1", {{"VERBATIM_COLL_HOST", "off"}}});
  expect_that_others_end("leaves", {4, 1, "1", {}});
}

TEST(CollectiveEnds, OneThatALivingRankHasLostEndsThemAtTheOthersToo) {
  RanksOptions options;
  options.time_limit_ms = 15'000;
  options.environment = {{"VERBATIM_COLL_HOST", "off"}, {"VERBATIM_LOG", "off"}};
  const RanksEnd end = run_ranks(3, VERBATIM_MPI_LYING_RANK, {"to_one"}, options);
  EXPECT_TRUE(end.is_success()) << end.told();
  EXPECT_NE(end.output.find("rank 2 of 3: rank 1 is lost: rank 0 has lost it"), std::string::npos)
      << end.told();
}

RanksEnd with_lost_rank(int ranks, const char* what, const Variables& environment) {
  RanksOptions options;
  options.end_all_with_one = false;
  options.time_limit_ms = 10'000;
  options.environment = environment;
  options.environment["VERBATIM_LOG"] = "off";
  return run_ranks(ranks, VERBATIM_MPI_LOST_RANK, {what}, options);
}

TEST(CollectiveEnds, OneThatIsLostIsToldToThoseWhoAreMetLater) {
  const RanksEnd end = with_lost_rank(3, "late", {{"VERBATIM_COLL_HOST", "off"}});
  EXPECT_TRUE(end.is_success()) << end.told();
}

TEST(CollectiveEnds, OneThatLivesHearsThatItIsLost) {
  const RanksEnd end = with_lost_rank(3, "itself", {{"VERBATIM_COLL_HOST", "off"}});
  EXPECT_TRUE(end.is_success()) << end.told();
  for (const char* named :
       {"rank 1 of 3: rank 0 has lost this rank", "rank 1 of 3: rank 2 has lost this rank"})
    EXPECT_NE(end.output.find(named), std::string::npos) << named << end.told();
}

TEST(CollectiveEnds, OneThatIsLostAndLivesReadsNothingOfAnotherCommunicator) {
  const RanksEnd end = with_lost_rank(4, "block", {});
  EXPECT_TRUE(end.is_success()) << end.told();
}

void expect_that_all_but_one_end(int ranks, int dead, const std::vector<std::string>& arguments,
                                 const Variables& environment) {
  RanksOptions options;
  options.end_all_with_one = false;
  options.time_limit_ms = 10'000;
  options.environment = environment;
  options.environment["VERBATIM_LOG"] = "off";
  const RanksEnd end = run_ranks(ranks, VERBATIM_MPI_COMMS_OF_DEAD_RANK, arguments, options);
  const std::string told = arguments[0] + " " + arguments[1] + ": " + end.told();
  ASSERT_TRUE(end.is_in_time) << told;
  for (int i = 0; i < ranks; ++i) {
    if (i == dead)
      EXPECT_EQ(end.ranks[i].signal, 9) << told;
    else
      EXPECT_EQ(end.ranks[i].exit_status, 0) << told;
  }
}

TEST(CollectiveEnds, OneThatIsKilledEndsMessagesToThoseWhoHaveFreedTheCommunicator) {
  for (const char* made_by : {"dup", "idup"})
    expect_that_all_but_one_end(3, 2, {"frees", made_by}, {{"VERBATIM_COLL_HOST", "off"}});
}

TEST(CollectiveEnds, OneThatIsKilledEndsTheMakingOfCommunicators) {
  for (const char* made_by : {"dup", "split", "create", "create_group"})
    expect_that_all_but_one_end(4, 2, {"makes", made_by}, {{"VERBATIM_COLL_HOST", "off"}});
}

TEST(CollectiveEnds, OneThatIsKilledEndsTheJoiningOfItsGroupWithAnother) {
  for (const char* steps : {"0", "1", "2"})
    expect_that_all_but_one_end(6, 1, {"joins", steps}, {{"VERBATIM_COLL_HOST", "off"}});
  for (const char* steps : {"0", "1"})
    expect_that_all_but_one_end(6, 1, {"joins_knowing", steps}, {{"VERBATIM_COLL_HOST", "off"}});
}

/// By messages, by lines and rooms of the host, by mapped memory, over nodes, and by groups.
TEST(CollectiveEnds, OneOfAnotherLengthIsNamed) {
  const Variables ways[] = {{},
                            {{"VERBATIM_COLL_HOST", "off"}},
                            {{"VERBATIM_MPI_NODES", "0:1-2"}},
                            {{"VERBATIM_MPI_GROUPS", "0:1-2"}},
                            {{"VERBATIM_MPI_GROUPS", "0,2:1"}}};
  for (const char* length : {"1", "14", "5000", "100000"})
    for (const Variables& way : ways) {
      RanksOptions options;
      options.time_limit_ms = 15'000;
      options.environment = way;
      const RanksEnd end = run_ranks(3, VERBATIM_MPI_DYING_RANK, {"differs", length, "2"}, options);
      EXPECT_TRUE(end.is_in_time) << length << ": " << end.told();
      // It may be the first itself to see that another has not its length.
      const std::string says = " of the communicator has sent another length than this one takes";
      EXPECT_TRUE(end.output.find("MPI_Allreduce: rank 2" + says) != std::string::npos ||
                  (end.output.find("rank 2 of 3: MPI_Allreduce: rank ") != std::string::npos &&
                   end.output.find(says) != std::string::npos))
          << length << ": " << end.told();
    }
}

TEST(CollectiveEnds, AnErrorThatIsFatalNamesTheRank) {
  RanksOptions options;
  options.end_all_with_one = false;
  options.time_limit_ms = 15'000;
  options.environment = {{"VERBATIM_COLL_HOST", "off"}};
  const RanksEnd end = run_ranks(3, VERBATIM_MPI_DYING_RANK, {"fatal", "1", "1"}, options);
  EXPECT_TRUE(end.is_in_time) << end.told();
  EXPECT_NE(end.output.find("of 3: MPI_Allreduce: rank 1 of MPI_COMM_WORLD, a member of the "
                            "communicator, is lost (MPI_ERR_PROC_ABORTED)"),
            std::string::npos)
      << end.told();
}

}  // namespace
}  // namespace verbatim::harness
