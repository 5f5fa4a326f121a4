// SPDX-License-Identifier: BSD-2-Clause
// `verbatim run` with ranks that are shell scripts, which speak PMI on descriptor 3.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/tools/tool_process.hpp"

namespace verbatim::tools {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

const char* const kBegin = "echo cmd=init pmi_version=1 pmi_subversion=1 >&3; read answer <&3; ";
const char* const kEnd = "echo cmd=finalize >&3; read answer <&3; ";

Program tool(const Environment& environment = {}) {
  return {VERBATIM_TOOL, "verbatim", environment};
}
Words of_ranks(int ranks, const std::string& script, const Words& options = {}) {
  Words words{"run", "-n", std::to_string(ranks)};
  words.insert(words.end(), options.begin(), options.end());
  for (const char* each : {"sh", "-c"}) words.push_back(each);
  words.push_back(script);
  return words;
}
Ending run_script(int ranks, const std::string& script, const Words& options = {}) {
  return run(tool(), of_ranks(ranks, script, options));
}
Words lines(const std::string& text) {
  std::istringstream in(text);
  Words out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  std::sort(out.begin(), out.end());
  return out;
}

TEST(Run, TellsEachRankWhoItIs) {
  const Ending ending = run_script(3,
                                   "echo $PMI_RANK of $PMI_SIZE on $PMI_FD, $PMI_SPAWNED, "
                                   "$MPI_LOCALRANKID of $MPI_LOCALNRANKS");
  EXPECT_EQ(ending.status, 0) << ending.err;
  EXPECT_THAT(lines(ending.out), ElementsAre("0 of 3 on 3, 0, 0 of 3", "1 of 3 on 3, 0, 1 of 3",
                                             "2 of 3 on 3, 0, 2 of 3"));
}

TEST(Run, HidesWhatAnotherLauncherSaid) {
  const Ending ending =
      run(tool({{"PMIX_RANK", "9"}, {"PMI_PORT", "host:1"}, {"OMPI_COMM_WORLD_SIZE", "9"}}),
          of_ranks(1, "echo \"[$PMIX_RANK$PMI_PORT$OMPI_COMM_WORLD_SIZE]\""));
  EXPECT_EQ(ending.out, "[]\n");
}

TEST(Run, ServesWhatRanksPublish) {
  const Ending ending = run_script(
      4, std::string(kBegin) +
             "echo cmd=get_my_kvsname >&3; read answer <&3; kvs=${answer##*kvsname=};"
             "echo cmd=put kvsname=$kvs key=k$PMI_RANK value=v$PMI_RANK >&3; read answer <&3;"
             "echo cmd=barrier_in >&3; read answer <&3;"
             "next=$(((PMI_RANK + 1) % PMI_SIZE));"
             "echo cmd=get kvsname=$kvs key=k$next >&3; read answer <&3; echo ${answer##*=};" +
             kEnd);
  EXPECT_EQ(ending.status, 0) << ending.err;
  EXPECT_THAT(lines(ending.out), ElementsAre("v0", "v1", "v2", "v3"));
}

TEST(Run, PassesOnWholeLinesWithTheirRank) {
  // A thousand lines of each rank, in pieces, and an end without a newline.
  const Ending ending =
      run_script(3,
                 "i=0; while [ $i -lt 1000 ]; do printf 'a%s' $PMI_RANK; echo b; i=$((i+1)); done;"
                 "printf end; echo err >&2",
                 {"--prefix"});
  const Words out = lines(ending.out);
  EXPECT_EQ(out.size(), 3003u);
  for (const std::string rank : {"0", "1", "2"}) {
    EXPECT_EQ(std::count(out.begin(), out.end(), "[" + rank + "] a" + rank + "b"), 1000);
    EXPECT_EQ(std::count(out.begin(), out.end(), "[" + rank + "] end"), 1);
  }
  EXPECT_THAT(lines(ending.err), ElementsAre("[0] err", "[1] err", "[2] err"));
}

TEST(Run, WithoutAPrefixBytesStayAsTheyAre) {
  EXPECT_EQ(run_script(1, "printf 'a\\nb'").out, "a\nb");
}

TEST(Run, TellsWhichRankDiedOfWhat) {
  const Ending ending = run_script(4, "test $PMI_RANK = 2 && kill -SEGV $$; exec sleep 100");
  EXPECT_EQ(ending.status, 128 + SIGSEGV);
  EXPECT_THAT(ending.err, ContainsRegex("rank 2 \\(pid [0-9]+\\) was killed by signal 11 "
                                        "\\(Segmentation fault\\)"));
  EXPECT_EQ(lines(ending.err).size(), 1u) << "the others did as they were told:\n" << ending.err;
}

TEST(Run, EndsTheOthersWithTheStatusOfTheFirstThatFailed) {
  const Ending ending = run_script(2, "test $PMI_RANK = 1 && exit 5; exec sleep 100");
  EXPECT_EQ(ending.status, 5);
  EXPECT_THAT(ending.err, ContainsRegex("rank 1 \\(pid [0-9]+\\) exited with status 5"));
}

TEST(Run, ARankThatLeavesBeforeItsEndHasFailed) {
  const Ending ending =
      run_script(2, std::string(kBegin) + "test $PMI_RANK = 1 && exit 0; exec sleep 100");
  EXPECT_EQ(ending.status, 1);
  EXPECT_THAT(ending.err, HasSubstr("exited with status 0 before MPI_Finalize"));
}

TEST(Run, NobodyWaitsForARankThatNeverBegan) {
  const Ending ending = run_script(2, std::string("test $PMI_RANK = 1 && exit 0; ") + kBegin +
                                          "echo cmd=barrier_in >&3; read answer <&3");
  EXPECT_EQ(ending.status, 1);
  EXPECT_THAT(ending.err, ContainsRegex("without MPI_Init|or never began"));
}

TEST(Run, AStatusAfterTheEndIsPassedOnAndEndsNobody) {
  const Ending ending =
      run_script(2, std::string(kBegin) + "echo cmd=barrier_in >&3; read answer <&3;" + kEnd +
                        "test $PMI_RANK = 1 && exit 6; echo last");
  EXPECT_EQ(ending.status, 6);
  EXPECT_EQ(ending.out, "last\n");
}

TEST(Run, AbortEndsAllWithItsCode) {
  const Ending ending =
      run_script(3, std::string(kBegin) +
                        "test $PMI_RANK = 1 && echo cmd=abort exitcode=9 message=out of luck >&3;"
                        "exec sleep 100");
  EXPECT_EQ(ending.status, 9);
  EXPECT_THAT(ending.err, ContainsRegex("rank 1 \\(pid [0-9]+\\) called MPI_Abort with code 9: "
                                        "out of luck"));
}

TEST(Run, WhoSpeaksNonsenseIsEndedWithASentence) {
  const Ending ending = run_script(2,
                                   std::string("trap '' TERM; test $PMI_RANK = 0 && exec sleep 100;"
                                               "head -c 100000 /dev/zero >&3; sleep 100"),
                                   {"--grace", "0.2"});
  EXPECT_EQ(ending.status, 1);
  EXPECT_THAT(ending.err, HasSubstr("does not speak PMI-1"));
}

TEST(Run, WhatWillNotEndIsKilledAfterTheGrace) {
  const Ending ending =
      run_script(2, "trap '' TERM; test $PMI_RANK = 1 && exit 3; while :; do sleep 1; done",
                 {"--grace", "0.2"});
  EXPECT_TRUE(ending.in_time);
  EXPECT_EQ(ending.status, 3);
}

/// Whether the process has ended within a second. What reaps it when its parent is gone may take a
/// moment, and a zombie is no process that runs.
bool has_ended(pid_t pid) {
  for (int i = 0; i < 1000; ++i) {
    if (kill(pid, 0) != 0) return true;
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string number, name, state = "Z";
    stat >> number >> name >> state;
    if (state == "Z" || state == "X") return true;
    usleep(1000);
  }
  return false;
}

TEST(Run, WhatARankHasStartedEndsWithIt) {
  const Ending ending = run_script(1, "sleep 1000 & echo $!");
  EXPECT_EQ(ending.status, 0);
  EXPECT_TRUE(has_ended(static_cast<pid_t>(std::stol(ending.out))));
}

TEST(Run, RanksEndWithALauncherThatIsKilled) {
  ToolProcess process(tool(), of_ranks(2, "echo $$; exec sleep 1000"));
  ASSERT_TRUE(process.wait_for_output("\n"));
  process.signal(SIGKILL);
  const Ending ending = process.finish();
  EXPECT_EQ(ending.signal, SIGKILL);
  for (const std::string& rank : lines(ending.out))
    EXPECT_TRUE(has_ended(static_cast<pid_t>(std::stol(rank)))) << rank;
}

TEST(Run, StandardInputGoesToRankZero) {
  const std::string file = ::testing::TempDir() + "/verbatim_run_input";
  {
    std::ofstream out(file);
    for (int i = 0; i < 20000; ++i) out << "line " << i << "\n";
  }
  const Ending ending = run(
      {"/bin/sh", "sh", {}},
      {"-c", std::string(VERBATIM_TOOL) + " run -n 2 sh -c 'echo $PMI_RANK $(wc -l)' < " + file});
  EXPECT_THAT(lines(ending.out), ElementsAre("0 20000", "1 0"));
  std::filesystem::remove(file);
}

TEST(Run, OutputThatCannotBeWrittenIsOneLineAndAFailure) {
  for (const char* const prints : {"echo whole", "printf partial", "yes"}) {
    const Ending ending =
        run({"/bin/sh", "sh", {}}, {"-c", std::string("exec ") + VERBATIM_TOOL +
                                              " run -n 2 sh -c '" + prints + "' >/dev/full"});
    EXPECT_TRUE(ending.in_time);
    EXPECT_EQ(ending.status, 1) << prints;
    EXPECT_EQ(ending.err,
              "verbatim run: cannot write all of the output: No space left on device\n");
  }
}

TEST(Run, WhoseOutputNobodyReadsEndsAsOfSigpipe) {
  const Ending ending =
      run({"/bin/bash", "bash", {}},
          {"-c", std::string(VERBATIM_TOOL) + " run -n 2 yes | head -n 1; exit ${PIPESTATUS[0]}"});
  EXPECT_EQ(ending.status, 128 + SIGPIPE);
  EXPECT_EQ(ending.err, "");
}

TEST(Run, PassesSignalsOnAndDiesOfThem) {
  ToolProcess process(tool(), of_ranks(2,
                                       "trap 'echo heard; exit 0' TERM; echo ready; "
                                       "while :; do sleep 0.05; done"));
  ASSERT_TRUE(process.wait_for_output("ready\nready\n"));
  process.signal(SIGTERM);
  const Ending ending = process.finish();
  EXPECT_EQ(ending.signal, SIGTERM);
  EXPECT_THAT(ending.out, HasSubstr("heard\nheard\n"));
}

TEST(Run, BindsEachRankToACoreOfItsOwnWhenThereAreEnough) {
  const std::string mask = "grep Cpus_allowed_list /proc/self/status";
  const Ending bound = run_script(1, mask, {"--bind-to", "core"});
  const Ending free = run_script(1, mask, {"--bind-to", "none"});
  const Ending crowded = run_script(64, mask);
  EXPECT_EQ(bound.status, 0);
  EXPECT_EQ(crowded.status, 0);
  if (sysconf(_SC_NPROCESSORS_ONLN) > 2) {
    EXPECT_NE(bound.out, free.out);
  }
  EXPECT_EQ(lines(crowded.out).front(), lines(free.out).front());
  EXPECT_EQ(lines(crowded.out).back(), lines(free.out).front());
}

TEST(Run, SaysWhatIsWrongWithItsArguments) {
  const auto error = [](const Words& words) {
    const Ending ending = run(tool(), words);
    EXPECT_EQ(ending.status, 1);
    return ending.err;
  };
  EXPECT_THAT(error({"run"}), HasSubstr("which program?"));
  EXPECT_THAT(error({"run", "-n", "0", "true"}), HasSubstr("-n 0: a number of ranks from 1"));
  EXPECT_THAT(error({"run", "-n"}), HasSubstr("'-n' needs a value"));
  EXPECT_THAT(error({"run", "--frob", "true"}), HasSubstr("no option '--frob'"));
  EXPECT_THAT(error({"run", "-n", "2", "-ppn", "1", "true"}), HasSubstr("on this host"));
  EXPECT_THAT(error({"run", "-n", "2", "/no/such/program"}),
              HasSubstr("cannot start '/no/such/program': No such file or directory"));
  EXPECT_THAT(run(tool(), {"run", "--help"}).out, HasSubstr("--bind-to"));
}

}  // namespace
}  // namespace verbatim::tools
