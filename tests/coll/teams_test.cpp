// SPDX-License-Identifier: BSD-2-Clause
// verbatim/coll.h: teams of processes without MPI, whose members play what scenarios.cpp has.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/mpi/ranks.hpp"

namespace verbatim::harness {
namespace {

class TeamDirectory {
 public:
  TeamDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "vbt-teams-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data()) != nullptr ? pattern : "";
  }
  ~TeamDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TeamDirectory(const TeamDirectory&) = delete;
  TeamDirectory& operator=(const TeamDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

RanksEnd play(int members, std::vector<std::string> scenario, RanksOptions options = {}) {
  const TeamDirectory directory;
  scenario.insert(scenario.begin(), directory.path());
  return run_ranks(members, VERBATIM_COLL_MEMBER, scenario, options);
}

RanksOptions quiet() {
  RanksOptions options;
  options.end_all_with_one = false;
  options.time_limit_ms = 30'000;
  options.environment["VERBATIM_LOG"] = "off";
  return options;
}

/// All that is not memory: as between hosts.
RanksOptions by_messages() {
  RanksOptions options;
  options.environment["VERBATIM_SHM_MAP"] = "off";
  options.environment["VERBATIM_SHM_CMA"] = "off";
  return options;
}

class TeamsOf : public testing::TestWithParam<int> {};

TEST_P(TeamsOf, DoEveryOperationOfEveryType) {
  const RanksEnd end = play(GetParam(), {"operations", "blocking", "0", "1", "7", "1000"});
  EXPECT_TRUE(end.is_success()) << end.told();
}

TEST_P(TeamsOf, DoEveryOperationThatIsBegunAndPolled) {
  const RanksEnd end = play(GetParam(), {"operations", "polled", "0", "3", "700"});
  EXPECT_TRUE(end.is_success()) << end.told();
}

TEST_P(TeamsOf, DoEveryOperationByMessages) {
  for (const char* how : {"blocking", "waited"}) {
    const RanksEnd end = play(GetParam(), {"operations", how, "2", "1500"}, by_messages());
    EXPECT_TRUE(end.is_success()) << how << ": " << end.told();
  }
}

TEST_P(TeamsOf, ReadEachOthersMemoryInPlace) {
  const RanksEnd end = play(GetParam(), {"mapped"});
  EXPECT_TRUE(end.is_success()) << end.told();
}

TEST_P(TeamsOf, AreIndependentOfEachOther) {
  for (const RanksOptions& options : {RanksOptions{}, by_messages()}) {
    const RanksEnd end = play(GetParam(), {"teams"}, options);
    EXPECT_TRUE(end.is_success()) << end.told();
  }
}

TEST_P(TeamsOf, HaveManyOperationsUnderWay) {
  const RanksEnd end = play(GetParam(), {"begun"});
  EXPECT_TRUE(end.is_success()) << end.told();
}

TEST_P(TeamsOf, RefuseWhatCannotBeAndGoOn) {
  const RanksEnd end = play(GetParam(), {"refused"}, quiet());
  EXPECT_TRUE(end.is_success()) << end.told();
}

INSTANTIATE_TEST_SUITE_P(Members, TeamsOf, testing::Values(1, 2, 3, 5, 8),
                         [](const auto& each) { return std::to_string(each.param); });

void expect_that_others_are_told(int members, const std::vector<std::string>& scenario,
                                 const RanksOptions& options) {
  const RanksEnd end = play(members, scenario, options);
  const std::string told = scenario[1] + " " + scenario[2] + " " + scenario[3] + " of " +
                           std::to_string(members) + ": " + end.told();
  ASSERT_TRUE(end.is_in_time) << told;
  EXPECT_EQ(end.ranks[1].signal, 9) << told;
  for (int i = 0; i < members; ++i) {
    if (i == 1) continue;
    EXPECT_EQ(end.ranks[static_cast<std::size_t>(i)].exit_status, 0) << told;
  }
}

class TeamEnds : public testing::TestWithParam<const char*> {};

TEST_P(TeamEnds, AtAllOthersWhenAMemberIsKilledInIt) {
  for (const char* count : {"1", "20000"})
    for (const char* how : {"blocking", "begun"})
      expect_that_others_are_told(3, {"dies", GetParam(), count, how}, quiet());
}

TEST_P(TeamEnds, AtAllOthersWhenAMemberIsKilledInItAndAllGoesByMessages) {
  RanksOptions options = quiet();
  options.environment.merge(by_messages().environment);
  expect_that_others_are_told(5, {"dies", GetParam(), "3000", "blocking"}, options);
}

INSTANTIATE_TEST_SUITE_P(In, TeamEnds,
                         testing::Values("barrier", "bcast", "reduce", "allreduce", "allgather",
                                         "alltoall"),
                         [](const auto& each) { return std::string(each.param); });

TEST(Teams, SayWhoHasNotComeInTimeAndTellItToThatOne) {
  RanksOptions between_hosts = quiet();
  between_hosts.environment.merge(by_messages().environment);
  for (const RanksOptions& options : {quiet(), between_hosts})
    for (const char* how : {"blocking", "begun"})
      for (const int members : {2, 4}) {
        const RanksEnd end = play(members, {"late", how}, options);
        EXPECT_TRUE(end.is_success()) << how << " of " << members << ": " << end.told();
      }
}

TEST(Teams, EndWhereCountsDiffer) {
  for (const int members : {2, 3}) {
    const RanksEnd end = play(members, {"differ"}, quiet());
    EXPECT_TRUE(end.is_success()) << end.told();
  }
}

TEST(Teams, CallTheProgramWhileTheyWait) {
  const RanksEnd end = play(2, {"idle"});
  EXPECT_TRUE(end.is_success()) << end.told();
}

TEST(Teams, AreNotThoseOfAForkedChild) {
  const RanksEnd end = play(2, {"forks"}, quiet());
  EXPECT_TRUE(end.is_success()) << end.told();
}

TEST(Teams, OfSeveralThreadsAreMadeAndUsedAtOnce) {
  const RanksEnd end = play(3, {"threads"});
  EXPECT_TRUE(end.is_success()) << end.told();
}

TEST(Teams, AreLeftByEachMemberAloneWhereAllHaveSaidSo) {
  for (const RanksOptions& options : {RanksOptions{}, by_messages()})
    for (const int members : {2, 3}) {
      const RanksEnd end = play(members, {"leave_alone"}, options);
      EXPECT_TRUE(end.is_success()) << end.told();
      EXPECT_EQ(end.told().find("died"), std::string::npos) << end.told();
    }
}

TEST(Teams, ChooseByBuiltInCostsWhereThoseOfMember0CannotBe) {
  for (RanksOptions options : {RanksOptions{}, by_messages()}) {
    options.environment["VERBATIM_LOG"] = "info";
    const RanksEnd end = play(5, {"garbled_costs"}, options);
    EXPECT_TRUE(end.is_success()) << end.told();
    EXPECT_NE(end.told().find("what member 0 says of costs is not used"), std::string::npos)
        << end.told();
  }
}

TEST(Teams, AreMadeForAllOrForNone) {
  RanksEnd end = play(2, {"disagree"}, quiet());
  EXPECT_TRUE(end.is_success()) << end.told();
  end = play(3, {"no_device"}, quiet());
  EXPECT_TRUE(end.is_success()) << end.told();
}

}  // namespace
}  // namespace verbatim::harness
