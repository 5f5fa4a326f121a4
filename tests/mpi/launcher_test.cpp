// SPDX-License-Identifier: BSD-2-Clause
// How MPI_Init takes what launchers say, and what is wrong with it.
#include <gtest/gtest.h>

#include <string>

#include "tests/mpi/ranks.hpp"

namespace {

using verbatim::harness::RanksEnd;
using verbatim::harness::RanksOptions;
using verbatim::harness::run_ranks;

constexpr const char* kProgram = VERBATIM_MPI_POINT_TO_POINT;
using Environment = std::map<std::string, std::string>;

TEST(MpiLauncher, RanksMeetByPmi1ByPmi2AndByAPort) {
  for (auto protocol : {RanksOptions::Protocol::kPmi1, RanksOptions::Protocol::kPmi2,
                        RanksOptions::Protocol::kPort}) {
    RanksOptions options;
    options.protocol = protocol;
    const RanksEnd end = run_ranks(3, kProgram, {"ring"}, options);
    EXPECT_TRUE(end.is_success()) << static_cast<int>(protocol) << ": " << end.told();
  }
}

/// MPI_Init ends one rank of two soon, by a line that says `word`.
void expect_refusal(RanksOptions options, const std::string& word) {
  options.environment["VERBATIM_MPI_LAUNCHER_SECONDS"] = "1";
  options.time_limit_ms = 40'000;
  const RanksEnd end = run_ranks(2, kProgram, {"ring"}, options);
  EXPECT_TRUE(end.is_in_time) << end.told();
  EXPECT_FALSE(end.is_success()) << end.told();
  EXPECT_NE(end.output.find("MPI_Init: "), std::string::npos) << end.told();
  EXPECT_NE(end.output.find(word), std::string::npos) << word << ": " << end.told();
}

void expect_refusal(const Environment& environment, const std::string& word) {
  RanksOptions options;
  options.environment = environment;
  expect_refusal(options, word);
}

TEST(MpiLauncher, VariablesThatLieAreNamed) {
  expect_refusal({{"PMI_FD", "x7"}}, "PMI_FD is \"x7\"");
  expect_refusal({{"PMI_FD", "999"}}, "PMI_FD is 999, but no such descriptor is open");
  expect_refusal({{"PMI_FD", "-1"}}, "PMI_FD is \"-1\"");
  expect_refusal({{"PMI_SIZE", "0"}}, "PMI_SIZE is \"0\"");
  expect_refusal({{"PMI_SIZE", ""}}, "did not set PMI_SIZE");
  expect_refusal({{"PMI_SIZE", "99999999999999999999"}}, "PMI_SIZE is \"99999999999999999999\"");
  expect_refusal({{"PMI_RANK", "-3"}}, "PMI_RANK is \"-3\"");
  expect_refusal({{"PMI_RANK", "2"}}, "PMI_RANK is 2 and PMI_SIZE is 2");
  expect_refusal({{"PMI_RANK", ""}}, "did not set PMI_RANK");
  expect_refusal({{"PMI_FD", ""}}, "PMI_RANK is set, but neither PMI_FD nor PMI_PORT");
  expect_refusal({{"PMI_FD", ""}, {"PMI_RANK", ""}}, "PMI_SIZE is set, but neither");
  expect_refusal({{"PMI_FD", "2"}}, "PMI_FD is \"2\"");  // our own stderr
  expect_refusal({{"PMI_FD", ""}, {"PMI_PORT", "nowhere"}}, "not host:port");
  expect_refusal({{"PMI_FD", ""}, {"PMI_PORT", "127.0.0.1:1"}, {"PMI_ID", "0"}}, "cannot connect");
}

/// The answer to `command` is `text`.
void expect_refusal_of(RanksOptions::Protocol protocol, const char* command, const char* text,
                       const std::string& word) {
  RanksOptions options;
  options.protocol = protocol;
  options.answers[command] = text;
  expect_refusal(options, word);
}

TEST(MpiLauncher, LaunchersThatLieAreNamed) {
  using enum RanksOptions::Protocol;
  const std::string long_word(3000, 'x');
  expect_refusal_of(kPmi1, "init", "cmd=response_to_init rc=-1 pmi_version=1 pmi_subversion=1",
                    "refuses version 1.1");
  expect_refusal_of(kPmi1, "init", long_word.c_str(), "does not answer");
  expect_refusal_of(kPmi1, "get_my_kvsname", "cmd=my_kvsname", "has no name");
  expect_refusal_of(kPmi1, "put", "cmd=put_result rc=-1 msg=full", "launcher");
  expect_refusal_of(kPmi2, "init", "cmd=response_to_init rc=0 pmi_version=1", "version 2.0");
  for (const char* which : {"rank=0;size=0", "rank=2;size=2", "rank=-1;size=2",
                            "rank=0;size=", "rank=0;size=99999999999999999999", "size=2"})
    expect_refusal_of(kPmi2, "fullinit",
                      (std::string("cmd=fullinit-response;rc=0;") + which + ";").c_str(),
                      "a rank that is not within its size");
  expect_refusal_of(kPmi2, "fullinit", "cmd=fullinit-response;rc=0;rank=1;size=5;",
                    "the launcher says 1 of 5");
  expect_refusal_of(kPmi2, "fullinit", "cmd=fullinit-response;rc=14;", "refuses this process");
  expect_refusal_of(kPmi2, "fullinit", long_word.c_str(), "refuses this process");
  for (const char* which : {"size=0\ncmd=set rank=0", "size=2\ncmd=set rank=2"})
    expect_refusal_of(
        kPort, "initack",
        (std::string("cmd=initack rc=0\ncmd=set ") + which + "\ncmd=set debug=0").c_str(),
        "a rank that is not within its size");
}

TEST(MpiLauncher, AnAddressThatIsNoneEndsWhoeverNeedsIt) {
  RanksOptions options;
  options.answers["get"] = "cmd=get_result rc=0 value=nonsense";
  const RanksEnd end = run_ranks(2, kProgram, {"ring"}, options);
  EXPECT_TRUE(end.is_in_time) << end.told();
  EXPECT_FALSE(end.is_success()) << end.told();
  EXPECT_NE(end.output.find("its address is not known to the launcher"), std::string::npos)
      << end.told();
}

/// What ranks choose algorithms by they must all have, so that nobody chooses alone.
void expect_that_nobody_chooses(const char* question, const char* answer, const std::string& word) {
  RanksOptions options;
  options.answers[question] = answer;
  options.environment["VERBATIM_MPI_LAUNCHER_SECONDS"] = "1";
  options.time_limit_ms = 40'000;
  const RanksEnd end = run_ranks(2, VERBATIM_MPI_DYING_RANK, {"fatal", "1", "1"}, options);
  EXPECT_TRUE(end.is_in_time) << end.told();
  EXPECT_FALSE(end.is_success()) << end.told();
  EXPECT_NE(end.output.find(word), std::string::npos) << word << ": " << end.told();
}

TEST(MpiLauncher, OneThatDoesNotSayWhatCollectivesAreChosenByEndsTheJob) {
  constexpr const char* kCosts = "get verbatim-costs";
  expect_that_nobody_chooses(kCosts, "", "the launcher does not say by which costs");
  expect_that_nobody_chooses(kCosts, "cmd=get_result rc=0 value=choosing:1,near.latency:60.0",
                             "the launcher garbles");
  expect_that_nobody_chooses(kCosts, "cmd=get_result rc=0 value=near.latency:60.000",
                             "the launcher garbles");
  expect_that_nobody_chooses(kCosts, "cmd=get_result rc=0 value=choosing:0,near.latency:60.000",
                             "different versions of this library");
  const std::string longer = "cmd=get_result rc=0 value=choosing:2," + std::string(1200, 'x');
  expect_that_nobody_chooses(kCosts, longer.c_str(), "different versions of this library");
  expect_that_nobody_chooses("get PMI_process_mapping", "",
                             "the launcher does not say on which nodes ranks are");
}

void expect_no_hang(const char* deaf_to) {
  RanksOptions options;
  options.answers[deaf_to] = "";
  options.environment["VERBATIM_MPI_LAUNCHER_SECONDS"] = "1";
  options.time_limit_ms = 50'000;
  const RanksEnd end = run_ranks(2, kProgram, {"ring"}, options);
  EXPECT_TRUE(end.is_in_time) << deaf_to << ": " << end.told();
  EXPECT_FALSE(end.is_success()) << deaf_to << ": " << end.told();
  EXPECT_NE(end.output.find("launcher"), std::string::npos) << deaf_to << ": " << end.told();
}

TEST(MpiLauncher, ADescriptorThatNobodyAnswersIsNotWaitedForForEver) {
  for (const char* request : {"init", "get_my_kvsname", "put", "get"}) expect_no_hang(request);
}

TEST(MpiLauncher, NorAreRanksThatNeverComeToMpiInit) { expect_no_hang("barrier_in"); }

TEST(MpiLauncher, OneThatSpeaksPmixAloneIsNamed) {
  expect_refusal(
      {{"PMI_FD", ""}, {"PMI_RANK", ""}, {"PMI_SIZE", ""}, {"PMIX_NAMESPACE", "prterun-1"}},
      "speaks PMIx alone (PMIX_NAMESPACE is prterun-1)");
  expect_refusal({{"PMI_FD", ""}, {"PMI_RANK", ""}, {"PMI_SIZE", ""}, {"PMIX_RANK", "1"}},
                 "speaks PMIx alone (PMIX_RANK is 1)");
}

TEST(MpiLauncher, SeveralTasksOfSrunWithoutPmiDoNotRunAlone) {
  expect_refusal(
      {{"PMI_FD", ""}, {"PMI_RANK", ""}, {"PMI_SIZE", ""}, {"SLURM_STEP_NUM_TASKS", "2"}},
      "srun --mpi=pmi2");
}

TEST(MpiLauncher, WithoutOneAProcessIsAlone) {
  RanksOptions options;
  options.environment = {{"PMI_FD", ""}, {"PMI_RANK", ""}, {"PMI_SIZE", ""}};
  const RanksEnd end = run_ranks(1, kProgram, {"sizes"}, options);
  EXPECT_TRUE(end.is_success()) << end.told();
}

TEST(MpiLauncher, ADeviceThatIsNotThereIsNamed) {
  expect_refusal({{"VERBATIM_MPI_DEVICE", "mlx5_77"}}, "VERBATIM_MPI_DEVICE names \"mlx5_77\"");
}

TEST(MpiLauncher, NodesOfRanksThatAreNotThereAreRefused) {
  expect_refusal({{"VERBATIM_MPI_NODES", "1-3"}},
                 "VERBATIM_MPI_NODES is \"1-3\", which names a rank 3 that is none");
}

TEST(MpiLauncher, GroupsOfRanksThatAreNotThereAreRefused) {
  expect_refusal({{"VERBATIM_MPI_GROUPS", "0/9"}},
                 "VERBATIM_MPI_GROUPS is \"0/9\", which names a rank 9 that is none");
}

TEST(MpiLauncher, AnAlgorithmThatIsNoneIsNamedBesideThoseThereAre) {
  expect_refusal({{"VERBATIM_COLL_ALLREDUCE", "magic"}},
                 "VERBATIM_COLL_ALLREDUCE is \"magic\", and the algorithms of allreduce are: "
                 "recursive_doubling, rabenseifner, ring, reduce_bcast");
  expect_refusal({{"VERBATIM_COLL_EXSCAN", "Linear"}}, "recursive_doubling, linear");
}

}  // namespace
