// SPDX-License-Identifier: BSD-2-Clause
// `verbatim perf coll`: every collective to its end with its results checked, under the launchers that
// are here and by itself; what its records are; what goes wrong in one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>

#include "tests/tools/perf_output.hpp"
#include "tests/tools/perf_pair.hpp"
#include "tests/tools/records.hpp"

namespace verbatim::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PerfColl : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!VBT_HAS_MPI) GTEST_SKIP() << "built without MPI (VERBATIM_MPI)";
  }
  Program tool() const { return real_tool("verbatim", fabric_.environment()); }
  Ending coll(const Words& words) const { return run(tool(), joined({"perf", "coll"}, words)); }
  /// The rows of a run that ends well. Floors take a tenth of a second in each.
  std::vector<PerfRow> rows(const Words& words) const {
    const Ending ending = coll(joined(words, {"--no-floors"}));
    EXPECT_TRUE(ending.in_time);
    EXPECT_EQ(ending.status, 0) << ending.err;
    EXPECT_EQ(ending.err, "");
    return perf_rows(ending.out);
  }
  PrivateFabric fabric_;
};

constexpr const char* kNames[] = {
    "barrier",   "bcast",     "gather",     "gatherv",        "scatter",
    "scatterv",  "allgather", "allgatherv", "alltoall",       "alltoallv",
    "alltoallw", "reduce",    "allreduce",  "reduce_scatter", "reduce_scatter_block",
    "scan",      "exscan"};

TEST_F(PerfColl, MeasuresEachCollectiveAndChecksItsResults) {
  for (const std::string name : kNames) {
    SCOPED_TRACE(name);
    const auto found = rows({name, "-n", "3", "-c", "-i", "6", "-x", "2",
                             name == "barrier" ? "--full" : "--sizes=1000"});
    ASSERT_EQ(found.size(), 1u);
    const PerfRow& row = found[0];
    EXPECT_EQ(row[0], name == "barrier" ? 0 : 1000);
    EXPECT_EQ(row[1], 6);
    if (name == "barrier") continue;
    ASSERT_EQ(row.size(), 11u);
    EXPECT_GT(row[2], 0);
    EXPECT_LE(row[2], row[3]) << "the least of ranks, and the median";
    EXPECT_LE(row[2], row[4]);
    for (std::size_t i = 6; i < 9; ++i) EXPECT_LE(row[i - 1], row[i]) << "percentiles rise";
    EXPECT_EQ(row[10], 0) << "wrong results";
  }
}

TEST_F(PerfColl, MeasuresEachNonblockingFormBesideAComputation) {
  for (const std::string name : kNames) {
    SCOPED_TRACE(name);
    const auto found = rows({"i" + name, "-n", "2", "-c", "-i", "6", "-x", "2",
                             name == "barrier" ? "--test-interval=5" : "--sizes=4096"});
    ASSERT_EQ(found.size(), 1u);
    const PerfRow& row = found[0];
    ASSERT_EQ(row.size(), 18u);
    EXPECT_GT(row[2], 0);
    // It holds its parts: to begin, to test and to wait.
    EXPECT_GE(row[2] + 0.05, row[4] + row[5] + row[6]);
    EXPECT_GT(row[3], 0) << "computation";
    EXPECT_GE(row[8], 0) << "overlap in percent";
    EXPECT_LE(row[8], 100);
    EXPECT_EQ(row[17], 0) << "wrong results";
  }
}

TEST_F(PerfColl, TakesTheSizesThatAreAskedFor) {
  const auto sizes = [&](const Words& words) {
    std::vector<double> all;
    for (const PerfRow& row : rows(joined({"allreduce", "-i", "3", "-x", "1"}, words)))
      all.push_back(row[0]);
    return all;
  };
  EXPECT_THAT(sizes({"-m", "16:128"}), ElementsAre(16, 32, 64, 128));
  EXPECT_THAT(sizes({"-m", "32"}), ElementsAre(8, 16, 32)) << "an element is the least";
  EXPECT_THAT(sizes({"-s", "24,1K,8..16"}), ElementsAre(8, 16, 24, 1024));
  EXPECT_THAT(sizes({"-m", "8", "--type", "mpi_int"}), ElementsAre(4, 8));
}

TEST_F(PerfColl, TakesOptionsTogether) {
  EXPECT_EQ(rows({"reduce", "-n", "4", "-k", "rotate", "--op", "prod", "--type", "float",
                  "--in-place", "--memory", "alloc", "-c", "-i", "8", "-s", "256"})[0][10],
            0);
  EXPECT_EQ(rows({"allgather", "-n", "4", "-a", "ring", "--same-buffer", "-c", "-i", "8", "-s",
                  "64K"})[0][10],
            0);
  EXPECT_EQ(rows({"allreduce", "-a", "table", "-c", "-i", "3", "-s", "8", "-f"})[0].size(), 16u);
  EXPECT_EQ(rows({"iallreduce", "-t", "2", "-f", "-i", "20", "-s", "64K"})[0][9], 2)
      << "MPI_Test calls";
}

TEST_F(PerfColl, HasTheFloorsOfItsCoresBehindTheTable) {
  const char* const hand_over = "# N F1 cache line from core to core N usec N % N usec N <-";
  const char* const hand_over_beside = "# N F1 cache line from core to core N usec N % N usec N";
  const char* const copy = "# N copy ping-pong mapped N usec N % N usec N <-";
  const auto barrier = perf_floor_form(coll({"barrier", "-i", "200"}).out);
  ASSERT_EQ(barrier.size(), 4u);
  EXPECT_THAT(barrier[0], HasSubstr("# Floors of this run, between CPU N and CPU N ("));
  EXPECT_EQ(barrier[1], "# #bytes floor floor spread test test/floor");
  EXPECT_EQ(barrier[2], hand_over);
  EXPECT_EQ(barrier[3], "# test/floor of a collective is normally above N");
  const auto allreduce = perf_floor_form(coll({"allreduce", "-s", "8,64K", "-i", "20"}).out);
  ASSERT_EQ(allreduce.size(), 5u);
  EXPECT_EQ(allreduce[2], hand_over);
  EXPECT_EQ(allreduce[3], copy) << "of 64 KiB";
  const auto bcast = perf_floor_form(coll({"ibcast", "-s", "64K", "-i", "20"}).out);
  ASSERT_EQ(bcast.size(), 5u);
  EXPECT_EQ(bcast[2], hand_over_beside);
  EXPECT_EQ(bcast[3], copy);
  EXPECT_THAT(bcast[4], ::testing::StartsWith("# test: the collective by itself; "));
  EXPECT_THAT(bcast[4],
              ::testing::EndsWith("for ranks that wait for nobody, which are in the mean"));
  EXPECT_TRUE(perf_floor_form(coll({"bcast", "-s", "8", "-i", "5", "--no-floors"}).out).empty());
}

TEST_F(PerfColl, SaysWhyThereAreNoFloors) {
  EXPECT_THAT(coll({"barrier", "-n", "1", "-i", "5"}).out,
              HasSubstr("\n# Floors of this run: none (one rank alone has nobody to wait for)\n"));
  const TestFolder folder;
  const Ending ending = run(
      Program{"/usr/bin/taskset", "taskset", fabric_.environment()},
      {"-c", "0", tool().file, "perf", "coll", "barrier", "-i", "5", "--jsonl", folder.path("c")});
  EXPECT_EQ(ending.status, 0) << ending.err;
  EXPECT_THAT(ending.out, HasSubstr("\n# Floors of this run: none (there is only one core)\n"));
  EXPECT_THAT(folder.read("c"), HasSubstr("\"missing\":\"there is only one core\""));
  EXPECT_THAT(folder.read("c"), ::testing::Not(HasSubstr("\"reference\"")));
}

TEST_F(PerfColl, HasNoFloorsOfRanksOfSeveralHosts) {
  const Program shell = {"/bin/sh", "sh", fabric_.environment()};
  const std::string elsewhere = "unshare --map-root-user --uts sh -c 'hostname elsewhere && ";
  if (run(shell, {"-c", elsewhere + "true'"}).status != 0)
    GTEST_SKIP() << "no host name of one's own here (unshare)";
  const std::string coll = tool().file + " perf coll barrier -i 5";
  const Ending ending = run(tool(), {"run", "-n", "2", "/bin/sh", "-c",
                                     "test $PMI_RANK = 0 && exec " + coll + "; exec " + elsewhere +
                                         "exec " + coll + "'"});
  EXPECT_EQ(ending.status, 0) << ending.err;
  EXPECT_THAT(ending.out,
              HasSubstr("\n# Floors of this run: none (the ranks are of several hosts)\n"));
}

TEST_F(PerfColl, SeesTheSkewThatItImposes) {
  const auto arrival = [&](const char* skew) {
    return rows({"allreduce", "-s", "8", "-i", "40", "-x", "5", "--skew", skew})[0][9];
  };
  // Of two times that chance draws up to 6 ms, the median distance is 1.8 ms; a busy machine adds to
  // it, and takes nothing away.
  EXPECT_GT(arrival("6000"), 900);
  EXPECT_GT(arrival("60000"), 9000);
}

TEST_F(PerfColl, RunsUnderLaunchers) {
  const std::string file = tool().file;
  const Words job = {file, "perf", "coll", "bcast", "-s", "8", "-i", "5", "-c"};
  const Ending own = run(tool(), joined({"run", "-n", "3"}, job));
  EXPECT_EQ(own.status, 0) << own.err;
  EXPECT_THAT(own.out, HasSubstr("bcast of 3 ranks"));
  const char* const hydra = "/usr/bin/mpiexec.hydra";
  if (access(hydra, X_OK) != 0) GTEST_SKIP() << "no " << hydra << " here (Debian: mpich)";
  const Ending ending =
      run(Program{hydra, "mpiexec.hydra", fabric_.environment()}, joined({"-n", "4"}, job));
  EXPECT_EQ(ending.status, 0) << ending.err;
  EXPECT_EQ(perf_rows(ending.out).size(), 1u) << ending.out;
  EXPECT_THAT(ending.out, HasSubstr("bcast of 4 ranks"));
}

TEST_F(PerfColl, WritesRecordsThatGateAndReportTake) {
  const TestFolder folder;
  const std::string file = folder.path("c.jsonl");
  ASSERT_EQ(
      coll({"iallreduce", "-s", "8,1K", "-i", "40", "--jsonl", file, "--csv", folder.path("c.csv")})
          .status,
      0);
  const std::string text = folder.read("c.jsonl");
  for (const char* part :
       {"\"kind\":\"collective\"", "\"iallreduce of 2 ranks, double sum, malloc\"",
        "\"iallreduce of 2 ranks, double sum, malloc, by itself\"",
        "\"iallreduce of 2 ranks, double sum, malloc, overlap\"", "\"p99.9\":", "\"unit\":\"%\""})
    EXPECT_THAT(text, HasSubstr(part));
  // Three of each size, and the two floors.
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 8);
  const std::string csv = folder.read("c.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 9);
  // What overlaps a computation is held against none: only what is measured by itself.
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto record = nlohmann::json::parse(line);
    const bool is_held = record["name"].get<std::string>().ends_with(", by itself");
    EXPECT_EQ(record.contains("reference"), is_held) << line;
    if (!is_held) continue;
    EXPECT_EQ(record["reference"]["name"],
              record["at"] == 8 ? "cache line from core to core" : "copy ping-pong mapped");
    EXPECT_EQ(record["reference"]["ratios"].size(), record["blocks"].size());
    EXPECT_GT(record["reference"]["median"].get<double>(), 0);
  }
  const Ending gate = run(tool(), {"perf", "gate", file, file, "--all"});
  EXPECT_THAT(gate.out, HasSubstr("collective: iallreduce of 2 ranks, double sum, malloc, 1 KiB"));
  EXPECT_THAT(gate.out, HasSubstr("8 figures in both"));
  const Ending report = run(tool(), {"perf", "report", file, "-o", folder.path("c.html")});
  EXPECT_EQ(report.status, 0) << report.err;
  EXPECT_THAT(folder.read("c.html"), HasSubstr("<h2>Collectives</h2>"));
  // By themselves they are read from the standard output.
  EXPECT_EQ(coll({"barrier", "-i", "5", "--jsonl", "-"}).out.rfind("{\"schema\"", 0), 0u);
}

TEST_F(PerfColl, InterruptedItHasPrintedAndWrittenWhatItMeasured) {
  const TestFolder folder;
  const std::string file = folder.path("c.jsonl");
  ToolProcess job(tool(), {"perf", "coll", "bcast", "-s", "8,8M", "-i", "5000", "--jsonl", file,
                           "--csv", folder.path("c.csv")});
  ASSERT_TRUE(job.wait_for_output("\n 8 ")) << job.errors();
  job.signal(SIGINT);
  const Ending ending = job.finish();
  EXPECT_TRUE(ending.in_time);
  EXPECT_EQ(ending.signal, SIGINT);
  EXPECT_THAT(ending.err, HasSubstr("interrupted: what was measured till then"));
  const std::string text = folder.read("c.jsonl");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  EXPECT_THAT(text, HasSubstr("\"at\":8,"));
  const std::string csv = folder.read("c.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 2) << csv;
}

TEST_F(PerfColl, OfALongSizeALineOnATerminalTells) {
  ToolProcess job(tool(), {"perf", "coll", "bcast", "-s", "8M", "-i", "1000000"},
                  ToolProcess::Errors::kTerminal);
  EXPECT_TRUE(job.wait_for_error("\rbcast, 8388608 bytes, 2 s")) << job.errors();
  job.signal(SIGINT);
  EXPECT_EQ(job.finish().signal, SIGINT);
}

TEST_F(PerfColl, AnOlderFileStaysUntilThereIsSomethingToWrite) {
  const TestFolder folder;
  const std::string file = folder.path("c.jsonl");
  std::ofstream(file) << "older, and longer than a record of a run may be\n"
                      << std::string(9999, 'x');
  ToolProcess job(tool(), {"perf", "coll", "bcast", "-s", "8M", "-i", "5000", "--jsonl", file});
  ASSERT_TRUE(job.wait_for_output("#bytes")) << job.errors();
  job.signal(SIGINT);
  EXPECT_EQ(job.finish().signal, SIGINT);
  EXPECT_THAT(folder.read("c.jsonl"), ::testing::StartsWith("older"));
  ASSERT_EQ(coll({"bcast", "-s", "8", "-i", "5", "--jsonl", file}).status, 0);
  const std::string text = folder.read("c.jsonl");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << "it and its floor, and no older one";
}

TEST_F(PerfColl, SaysWhatIsWrongInOneLineAndStartsNobody) {
  struct Wrong {
    Words words;
    const char* says;
  };
  for (const Wrong& wrong : {
           Wrong{{}, "which collective?"},
           Wrong{{"alreduce"}, "there is no collective 'alreduce' (there are: barrier, bcast,"},
           Wrong{{"bcast", "reduce"}, "'reduce' is too much"},
           Wrong{{"bcast", "-m", "8:4"}, "'8:4' begins above its end (-m)"},
           Wrong{{"bcast", "-m", "8x"}, "size '8x' is not a number from 1 to 2G"},
           Wrong{{"bcast", "-s", "8,"}, "'8,' is no list of sizes"},
           Wrong{{"bcast", "-m", "8", "-s", "8"}, "sizes are named twice"},
           Wrong{{"bcast", "-i", "0"}, "iterations '0' is not a number from 1"},
           Wrong{{"bcast", "-n", "2", "-k", "2"}, "root 2 is none of 2 ranks"},
           Wrong{{"bcast", "-t", "2"}, "MPI_Test is of nonblocking collectives: ibcast"},
           Wrong{{"bcast", "--in-place"}, "bcast has no MPI_IN_PLACE"},
           Wrong{{"bcast", "--op", "sum"}, "bcast has no operation"},
           Wrong{{"bcast", "--memory", "hbm"}, "memory 'hbm' is none of malloc, alloc"},
           Wrong{{"bcast", "--skew", "-1"}, "'-1' is no time in us"},
           Wrong{{"bcast", "-m", "1G"}, "or a larger -M"},
           Wrong{{"bcast", "--jsonl", "/nowhere/f"}, "cannot write '/nowhere/f'"},
           Wrong{{"bcast", "-a", "flood"}, "bcast has no algorithm 'flood'"},
           Wrong{{"allgather", "-n", "3", "-a", "recursive_doubling"}, "wants a number of ranks"},
           Wrong{{"allreduce", "--type", "char"}, "MPI_CHAR has no MPI_SUM"},
           Wrong{{"allreduce", "--type", "float", "--op", "bor"}, "MPI_FLOAT has no MPI_BOR"},
           Wrong{{"allreduce", "-s", "4"}, "4 bytes are less than MPI_DOUBLE"},
           Wrong{{"barrier", "-m", "8"}, "barrier has no size"},
           Wrong{{"bcast", "-s", "2G"}, "'2G': sizes are from 1 to 2G less one (-s)"},
           Wrong{{"bcast", "-m", "2G"}, "size '2G' is not a number from 1 to 2G less one"},
           Wrong{{"bcast", "-M", "2T"}, "memory '2T' is not a number from 1 to 1024G"},
           // What is advised is taken: with it another limit is met.
           Wrong{{"allgather", "-n", "4", "-s", "1G", "-M", "64G"}, "places beyond an int"},
           Wrong{{"bcast", "--test-interval", "5"}, "ibcast, or leave out --test-interval"},
           Wrong{{"ibcast", "--test-interval", "5", "-t", "2"}, "leave out -t or --test-interval"},
           Wrong{{"bcast", "--seed", "5"}, "add --skew, or leave it out"},
           Wrong{{"barrier", "--type", "int"}, "barrier moves no data: leave out --type"},
           Wrong{{"barrier", "--same-buffer"}, "leave out --same-buffer"},
           Wrong{{"barrier", "--memory", "alloc"}, "leave out --memory"},
           Wrong{{"barrier", "--op", "sum"}, "barrier has no operation"},
           Wrong{{"barrier", "--in-place"}, "barrier has no MPI_IN_PLACE"},
           Wrong{{"barrier", "-q"}, "there is no option '-q'"},
           Wrong{{"barrier", "-i"}, "'-i' needs a value"},
       }) {
    const Ending ending = coll(wrong.words);
    EXPECT_EQ(ending.status, 1) << ending.err;
    EXPECT_EQ(own_lines(ending.err), 1) << ending.err;
    EXPECT_THAT(ending.err, HasSubstr(wrong.says));
    EXPECT_EQ(ending.out, "");
  }
  const Ending launched =
      run(tool(), {"run", "-n", "2", tool().file, "perf", "coll", "bcast", "-n", "3"});
  EXPECT_GT(launched.status, 0);
  EXPECT_THAT(launched.err, HasSubstr("the launcher has started 2 ranks, not 3 (-n)"));
}

/// The children of a process.
std::vector<pid_t> children_of(pid_t parent) {
  const std::string id = std::to_string(parent);
  std::ifstream file("/proc/" + id + "/task/" + id + "/children");
  std::vector<pid_t> all;
  for (pid_t one; file >> one;) all.push_back(one);
  return all;
}

TEST_F(PerfColl, EndsSoonWhenARankDies) {
  ToolProcess job(tool(), {"perf", "coll", "allreduce", "-n", "3", "-s", "8", "-i", "1000000"});
  ASSERT_TRUE(job.wait_for_output("#bytes")) << job.errors();
  // The heading is rank 0's: by then MPI_Init is behind all of them. Among the children is also the
  // one that looks after them, which is the first.
  const std::vector<pid_t> children = children_of(job.pid());
  ASSERT_GE(children.size(), 3u);
  kill(children.back(), SIGKILL);
  const Ending ending = job.finish();
  EXPECT_TRUE(ending.in_time);
  EXPECT_EQ(ending.status, 128 + SIGKILL);
  EXPECT_THAT(ending.err, HasSubstr("was killed by signal 9"));
}

}  // namespace
}  // namespace verbatim::tools
