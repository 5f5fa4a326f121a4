// SPDX-License-Identifier: BSD-2-Clause
// `verbatim perf pattern` under the launchers that are here: every pattern to its end, and what goes
// wrong in one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/tools/perf_output.hpp"
#include "tests/tools/perf_pair.hpp"
#include "tests/tools/records.hpp"

namespace verbatim::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class PerfPatterns : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!VBT_HAS_MPI) GTEST_SKIP() << "built without MPI (VERBATIM_MPI)";
  }
  Ending job(const std::string& ranks, const Words& words) {
    const Program verbatim = real_tool("verbatim", fabric_.environment());
    return run(verbatim, joined({"run", "-n", ranks, verbatim.file, "perf", "pattern"}, words));
  }
  PrivateFabric fabric_;
};

TEST_F(PerfPatterns, RunToTheirEndAndPrintOneTable) {
  for (const char* pattern : {"pairs", "incast", "all-pairs", "ring", "halo"}) {
    const Ending ending = job("3", {pattern, "-n", "20", "-s", "4096", "--no-floors"});
    EXPECT_TRUE(ending.in_time);
    EXPECT_EQ(ending.status, 0) << ending.err;
    const auto rows = perf_rows(ending.out);
    ASSERT_EQ(rows.size(), 1u) << ending.out;
    ASSERT_EQ(rows[0].size(), 6u);
    EXPECT_EQ(rows[0][0], 4096);
    EXPECT_GT(rows[0][2], 0);
    EXPECT_LE(rows[0][3], rows[0][4]);  // the slowest rank, and the fastest
    EXPECT_THAT(ending.out, HasSubstr(std::string("pattern ") + pattern + "\n"));
  }
  const auto all = perf_rows(job("2", {"ring", "-n", "5", "-a", "--no-floors"}).out);
  EXPECT_EQ(all.size(), 23u);
}

TEST_F(PerfPatterns, HaveTheFloorsOfTheirCoresBehindTheTable) {
  const Ending ending = job("3", {"ring", "-n", "20", "-s", "4096"});
  ASSERT_EQ(ending.status, 0) << ending.err;
  const std::vector<std::string> lines = perf_floor_form(ending.out);
  ASSERT_EQ(lines.size(), 5u) << ending.out;
  EXPECT_THAT(lines[0], HasSubstr("# Floors of this run, between CPU N and CPU N ("));
  EXPECT_THAT(lines[0], HasSubstr("taken before the test"));
  EXPECT_EQ(lines[1], "# #bytes floor floor spread test test/floor");
  EXPECT_EQ(lines[2], "# N F2 memcpy, one core N MB/sec N % N MB/sec N");
  EXPECT_EQ(lines[3], "# N F4 one copy by the kernel (CMA), write N MB/sec N % N MB/sec N <-");
  EXPECT_EQ(lines[4], "# test: the slowest rank that sends; test/floor of it is normally below N");
  const auto all = perf_floor_form(job("2", {"pairs", "-n", "5", "-a"}).out);
  EXPECT_EQ(all.size(), 3u + 2 * 23);
  EXPECT_THAT(job("2", {"ring", "-n", "5", "--no-floors"}).out, Not(HasSubstr("# ")));
}

TEST_F(PerfPatterns, OfRanksThatShareACoreTheFloorsAreThoseOfThatCore) {
  const Program verbatim = real_tool("verbatim", fabric_.environment());
  const Ending ending = run(Program{"/usr/bin/taskset", "taskset", fabric_.environment()},
                            {"-c", "0", verbatim.file, "run", "-n", "2", verbatim.file, "perf",
                             "pattern", "ring", "-n", "20", "-s", "4096"});
  EXPECT_TRUE(ending.in_time);
  ASSERT_EQ(ending.status, 0) << ending.err;
  EXPECT_THAT(ending.out, HasSubstr("between CPU 0 and CPU 0 (one core only"));
  EXPECT_THAT(ending.out, HasSubstr("F4 one copy by the kernel (CMA), write"));
}

/// What is long is told from the third second on, where somebody sees it.
class PerfPatternProgress : public PerfPatterns {
 protected:
  static constexpr char kLine[] = "\rwrite pattern ring, 1000000 bytes, 2 s";
  Words words(const std::string& tool) const {
    return {"run", "-n", "2", tool, "perf", "pattern", "ring", "-n", "1000000", "-s", "1000000"};
  }
};

TEST_F(PerfPatternProgress, IsALineOnATerminal) {
  const Program verbatim = real_tool("verbatim", fabric_.environment());
  ToolProcess job(verbatim, words(verbatim.file), ToolProcess::Errors::kTerminal);
  EXPECT_TRUE(job.wait_for_error(kLine)) << job.errors();
  EXPECT_EQ(job.errors().find('\r'), job.errors().find(kLine)) << "nothing before it";
  job.signal(SIGINT);
  EXPECT_EQ(job.finish().signal, SIGINT);
}

TEST_F(PerfPatternProgress, IsNothingWhereNobodySeesIt) {
  const Program verbatim = real_tool("verbatim", fabric_.environment());
  ToolProcess job(verbatim, words(verbatim.file));
  ASSERT_TRUE(job.wait_for_output(" #bytes"));
  EXPECT_TRUE(job.running_after(std::chrono::milliseconds(2600)));
  EXPECT_EQ(job.errors(), "");
  job.signal(SIGINT);
  EXPECT_EQ(job.finish().signal, SIGINT);
}

TEST_F(PerfPatternProgress, IsNotInAFileThatARankWritesToInsteadOfTheTerminal) {
  const TestFolder folder;
  const Program verbatim = real_tool("verbatim", fabric_.environment());
  std::string script = "exec 2>" + folder.path("err") + "; exec";
  const Words all = words(verbatim.file);
  for (std::size_t i = 3; i < all.size(); ++i) script += " " + all[i];
  ToolProcess job(verbatim, {"run", "-n", "2", "/bin/sh", "-c", script},
                  ToolProcess::Errors::kTerminal);
  ASSERT_TRUE(job.wait_for_output(" #bytes"));
  EXPECT_TRUE(job.running_after(std::chrono::milliseconds(2600)));
  job.signal(SIGINT);
  EXPECT_EQ(job.finish().signal, SIGINT);
  EXPECT_EQ(job.errors(), "");
  EXPECT_THAT(folder.read("err"), Not(HasSubstr("\r")));
}

TEST_F(PerfPatterns, WriteRecordsThatGateAndReportTake) {
  const TestFolder folder;
  const std::string file = folder.path("p.jsonl"), table = folder.path("p.csv");
  const Ending ending = job(
      "3", {"ring", "-n", "20", "-s", "4096", "--blocks", "4", "--jsonl", file, "--csv", table});
  ASSERT_EQ(ending.status, 0) << ending.err;
  const auto rows = perf_rows(ending.out);  // beside them
  ASSERT_EQ(rows.size(), 1u) << ending.out;
  std::vector<nlohmann::json> records;
  std::istringstream lines(folder.read("p.jsonl"));
  for (std::string line; std::getline(lines, line);) records.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(records.size(), 6u);
  const std::string name = "write pattern ring of 3 ranks depth 20";
  const char* const kinds[] = {"bandwidth", "rate", "bandwidth", "bandwidth"};
  const char* const ends[] = {"", "", ", slowest rank", ", fastest rank"};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(records[i]["kind"], kinds[i]);
    EXPECT_EQ(records[i]["name"], name + ends[i]);
    EXPECT_EQ(records[i]["at"], 4096);
    EXPECT_EQ(records[i]["provider"], "shm0");
    EXPECT_EQ(records[i]["blocks"].size(), 4u);
    EXPECT_EQ(records[i].contains("reference"), i != 1) << "a rate is held against none";
    if (i == 1) continue;
    // The tightest: by far the kernel's copy.
    EXPECT_EQ(records[i]["reference"]["name"], records[5]["name"]);
    EXPECT_EQ(records[i]["reference"]["median"], records[5]["median"]);
    EXPECT_EQ(records[i]["reference"]["ratios"].size(), 4u);
    EXPECT_GT(records[i]["reference"]["ratio"].get<double>(), 0);
    EXPECT_EQ(records[i]["noise"]["floor_spread"], records[4]["spread"]);
  }
  for (const std::size_t i : {4u, 5u}) {
    EXPECT_EQ(records[i]["kind"], "floor");
    EXPECT_EQ(records[i]["floor"], i == 4 ? "F2" : "F4");
    EXPECT_EQ(records[i]["at"], 4096);
    EXPECT_GE(records[i]["blocks"].size(), 1u);
  }
  // What the table says, in other units.
  const auto median = [&](std::size_t i) { return records[i]["median"].get<double>(); };
  EXPECT_NEAR(median(0), rows[0][2] * 1048576 / 1e9, 1e-4 + 0.01 * median(0));
  EXPECT_NEAR(median(1), rows[0][5], 1e-5);
  EXPECT_NEAR(median(0), median(1) * 4096 / 1e3, 1e-6 * median(0));
  EXPECT_NEAR(median(2), rows[0][3] * 1048576 / 1e9, 1e-4 + 0.01 * median(2));
  EXPECT_NEAR(median(3), rows[0][4] * 1048576 / 1e9, 1e-4 + 0.01 * median(3));
  EXPECT_GT(records[0]["cpu_ns"].get<double>(), 0);
  EXPECT_GE(records[0]["switches"].get<double>(), 0);
  const std::string csv = folder.read("p.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 7);
  EXPECT_THAT(csv, HasSubstr(",\"one copy by the kernel (CMA), write\","));
  const Program verbatim = real_tool("verbatim", fabric_.environment());
  const Ending gate = run(verbatim, {"perf", "gate", file, file, "--all"});
  EXPECT_THAT(gate.out, HasSubstr("bandwidth: " + name + ", 4 KiB"));
  EXPECT_THAT(gate.out, HasSubstr("6 figures in both"));
  const Ending report = run(verbatim, {"perf", "report", file, "-o", folder.path("p.html")});
  EXPECT_EQ(report.status, 0) << report.err;
  EXPECT_THAT(folder.read("p.html"), HasSubstr(name));
  // By themselves they are read from the standard output.
  EXPECT_EQ(job("2", {"pairs", "-n", "5", "--jsonl", "-"}).out.rfind("{\"schema\"", 0), 0u);
}

TEST_F(PerfPatterns, InterruptedTheyHavePrintedAndWrittenWhatTheyMeasured) {
  const TestFolder folder;
  const Program verbatim = real_tool("verbatim", fabric_.environment());
  ToolProcess job(verbatim, {"run", "-n", "2", verbatim.file, "perf", "pattern", "ring", "-a", "-n",
                             "20000", "--jsonl", folder.path("p")});
  ASSERT_TRUE(job.wait_for_output("\n 2 ")) << job.errors();
  job.signal(SIGINT);
  const Ending ending = job.finish();
  EXPECT_TRUE(ending.in_time);
  EXPECT_EQ(ending.signal, SIGINT);
  EXPECT_THAT(ending.err, HasSubstr("interrupted: what was measured till then"));
  EXPECT_THAT(folder.read("p"), HasSubstr("\"at\":2,"));
}

TEST_F(PerfPatterns, AFileThatCannotBeWrittenIsOneLineBeforeAnythingIsMeasured) {
  const Ending ending = job("2", {"ring", "-n", "20", "--csv", "/nonexistent/x"});
  EXPECT_TRUE(ending.in_time);
  EXPECT_EQ(ending.status, 1);
  EXPECT_EQ(ending.out, "");
  EXPECT_THAT(ending.err,
              HasSubstr("cannot write '/nonexistent/x': No such file or directory (--csv)\n"));
  EXPECT_THAT(ending.err, Not(HasSubstr("MPI_Abort")));
}

TEST_F(PerfPatterns, RunUnderHydra) {
  const char* const hydra = "/usr/bin/mpiexec.hydra";
  if (access(hydra, X_OK) != 0) GTEST_SKIP() << "no " << hydra << " here (Debian: mpich)";
  const Program verbatim = real_tool("verbatim", fabric_.environment());
  const Ending ending = run(Program{hydra, "mpiexec.hydra", fabric_.environment()},
                            {"-n", "4", verbatim.file, "perf", "pattern", "halo", "-n", "20"});
  EXPECT_EQ(ending.status, 0) << ending.err;
  EXPECT_EQ(perf_rows(ending.out).size(), 1u) << ending.out;
}

TEST_F(PerfPatterns, ARankThatVanishesEndsTheJob) {
  const Program verbatim = real_tool("verbatim", fabric_.environment());
  ToolProcess launcher(verbatim, {"run", "-n", "3", verbatim.file, "perf", "pattern", "ring", "-n",
                                  "1000000", "-s", "1000000"});
  ASSERT_TRUE(launcher.wait_for_output(" #bytes"));              // all are at it
  const std::vector<pid_t> ranks = children_of(launcher.pid());  // and who guards them, at first
  ASSERT_EQ(ranks.size(), 4u);
  kill(ranks.back(), SIGKILL);
  const Ending ending = launcher.finish();
  EXPECT_TRUE(ending.in_time);
  EXPECT_GT(ending.status, 0);
  EXPECT_THAT(ending.err, HasSubstr("was killed by signal 9"));
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) EXPECT_EQ(kill(ranks[rank], 0), -1);
}

TEST_F(PerfPatterns, SayWhatIsWrong) {
  struct Wrong {
    Words words;
    std::string says;
  };
  for (const Wrong& wrong :
       {Wrong{{"star"}, "'star' is none of pairs, incast, all-pairs, ring, halo"},
        Wrong{{}, "name one pattern"}, Wrong{{"ring", "halo"}, "name one pattern"},
        Wrong{{"ring", "-s", "0"}, "size '0' is not a number from 1"},
        Wrong{{"ring", "-q", "2"}, "there is no option '-q' (see --help)"},
        Wrong{{"ring", "--blocks", "0"}, "blocks '0' is not a number from 1 to 1000"},
        Wrong{{"ring", "-s"}, "'-s' needs a value"},
        Wrong{{"ring", "--report_gbits=1"}, "'--report_gbits=1' takes no value"},
        Wrong{{"ring", "-s", "1073741825"}, "is more than shm0 sends in one message"},
        Wrong{{"ring", "-d", "mlx5_0"}, "IB device mlx5_0 not found"}}) {
    const Ending ending = job("2", wrong.words);
    EXPECT_TRUE(ending.in_time);
    EXPECT_GT(ending.status, 0);
    EXPECT_THAT(ending.err, HasSubstr(wrong.says));
  }
  const Ending alone =
      run(real_tool("verbatim", fabric_.environment()), {"perf", "pattern", "ring"});
  EXPECT_EQ(alone.status, 1);
  EXPECT_THAT(alone.err, HasSubstr("a pattern is of two processes or more: mpiexec -n 8"));
}

}  // namespace
}  // namespace verbatim::tools
