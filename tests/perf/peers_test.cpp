// SPDX-License-Identifier: BSD-2-Clause
// Reading the output of other libraries' programs (as their Debian 12 versions print it), and the
// verdicts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "perf/footprint/program_size.hpp"
#include "perf/mpi/job.hpp"
#include "perf/peers/bench.hpp"
#include "perf/peers/kernel_device.hpp"
#include "perf/peers/libfabric.hpp"
#include "perf/peers/perftest.hpp"
#include "perf/peers/rows.hpp"
#include "perf/peers/ucx.hpp"
#include "perf/peers/verdict.hpp"
#include "perf/support/process.hpp"
#include "perf/support/scratch_folder.hpp"

namespace verbatim::perf {
namespace {

using ::testing::HasSubstr;

TEST(ParseUcx, TakesTheOverallRateOfTheLastLine) {
  const auto result = parse_ucx(
      "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n"
      "20000,0.090,0.091,0.090,84.89,84.89,11126213,11126214\n");
  ASSERT_TRUE(result);
  EXPECT_DOUBLE_EQ(result->messages_per_second, 11126214);
  EXPECT_NEAR(result->latency_ns(), 89.88, 0.01);
}

TEST(ParseUcx, AnErrorIsNoResult) {
  EXPECT_FALSE(parse_ucx(""));
  EXPECT_FALSE(parse_ucx(
      "[1795252311.048241] [vm:5495 :0] libperf.c:1398 UCX  ERROR Cannot use posix/posix\n"));
  EXPECT_FALSE(parse_ucx(
      "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n"));
  EXPECT_FALSE(parse_ucx("20000,0.090,0.090,0.090,84.89,84.89,11126213,0\n")) << "no rate at all";
}

TEST(ParsePingpong, TakesTheMoreExactOfTimeAndRate) {
  const auto fast = parse_pingpong(
      "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n"
      "8       100k    =100k    1.5m        0.07s     24.40       0.33       3.05\n");
  ASSERT_TRUE(fast);
  EXPECT_NEAR(*fast, 1000 / 3.05, 1e-9);
  const auto slow = parse_pingpong(
      "1m      1k      =1k      1.9g        0.31s   6744.47     155.48       0.01\n");
  ASSERT_TRUE(slow);
  EXPECT_DOUBLE_EQ(*slow, 155480);
}

TEST(ParsePingpong, WithoutAResultLineNothing) {
  EXPECT_FALSE(parse_pingpong(
      "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n"));
  EXPECT_FALSE(parse_pingpong("fi_getinfo: -61 (No data available)\n"));
}

TEST(ParseMpi, TakesTheLinesThatAreFiguresAndNothingElse) {
  const auto figures = parse_mpi_figures(
      "figure latency 8 221.400 210.100 ns 0/9\n"
      "[host:17] mca_base_component_repository_open: unable to open mca_x\n"
      "figure posted 10000 227.900 224.000 ns 5/9\n"
      "figure latency 8 nan nan ns 0/9\n"
      "figure latency 8 0.000 0.000 ns 0/9\n"
      "figure latency 8 221.400 210.100 ns 0/0\n"
      "figure latency 8 221.400 210.100 ns 0/9 more\n"
      "figure latency 8 221.4");
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].name, "latency");
  EXPECT_EQ(figures[0].with, 8u);
  EXPECT_DOUBLE_EQ(figures[0].median, 221.4);
  EXPECT_DOUBLE_EQ(figures[0].least, 210.1);
  EXPECT_EQ(figures[1].with, 10000u);
  EXPECT_EQ(figures[1].disturbed, 5);
  EXPECT_EQ(figures[1].blocks, 9);
}

Verdict verdict(Sense sense, double target, Blocks values) {
  return {"R0", "figure", "x", sense, target, std::move(values), {}, {}};
}

TEST(Verdict, TheMedianDecidesInBothSenses) {
  EXPECT_EQ(verdict(Sense::kAtMost, 1.4, Blocks({1.3, 1.4, 9})).word(), "pass");
  EXPECT_EQ(verdict(Sense::kAtMost, 1.4, Blocks({1.3, 1.41, 9})).word(), "short");
  EXPECT_EQ(verdict(Sense::kAtLeast, 60, Blocks({10, 60, 70})).word(), "pass");
  EXPECT_EQ(verdict(Sense::kAtLeast, 60, Blocks({10, 59, 70})).word(), "short");
}

TEST(Verdict, ADisturbedMeasurementIsNoVerdict) {
  Verdict disturbed = verdict(Sense::kAtMost, 1.4, Blocks({1}));
  disturbed.disturbed = true;
  EXPECT_EQ(disturbed.word(), "disturbed");
  EXPECT_FALSE(disturbed.judged());
}

TEST(Verdict, WithoutAValueItNeitherPassesNorFallsShort) {
  Verdict missing = verdict(Sense::kAtMost, 1, Blocks{});
  missing.missing = "ucx-utils is not installed";
  EXPECT_EQ(missing.word(), "not measurable here");
  EXPECT_FALSE(missing.judged());
  EXPECT_EQ(verdict(Sense::kShown, 0, Blocks({1})).word(), "shown");
  EXPECT_FALSE(verdict(Sense::kShown, 0, Blocks({1})).judged());
}

TEST(Verdict, ATimeByItselfIsShownAndNotJudged) {
  for (const char* unit : {"ns", "us", "ms", "million/s"}) {
    Verdict absolute = verdict(Sense::kAtMost, 1, Blocks({2}));
    absolute.unit = unit;
    EXPECT_EQ(absolute.word(), "shown") << unit;
    EXPECT_FALSE(absolute.judged()) << unit;
  }
  Verdict memory = verdict(Sense::kAtMost, 1, Blocks({2}));
  memory.unit = "KiB";
  EXPECT_EQ(memory.word(), "short") << "memory is no matter of a busy host";
}

TEST(Verdict, IsARecordThatSaysWhatItIsToReach) {
  Verdict ratio = verdict(Sense::kAtLeast, 0.9, Blocks({0.8, 1, 0.95}));
  ratio.detail = "send 9 / UCX 10 GB/s";
  Verdict time = verdict(Sense::kAtMost, 3, Blocks({-0.5, 2}));
  time.unit = "ms";
  Verdict missing = verdict(Sense::kShown, 0, Blocks{});
  missing.missing = std::string(5000, 'x');
  RunAbout about;
  about.provider = "shm";
  const std::vector<Record> records = records_of({ratio, time, missing}, about);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].kind, "compare");
  EXPECT_EQ(records[0].name, "R0 figure");
  EXPECT_EQ(records[0].about.provider, "shm");
  EXPECT_EQ(records[0].blocks.values(), (std::vector<double>{0.8, 1, 0.95}));
  EXPECT_EQ(records[0].target.row, "R0");
  EXPECT_EQ(records[0].target.sense, "at least");
  EXPECT_DOUBLE_EQ(records[0].target.value, 0.9);
  EXPECT_EQ(records[0].target.verdict, "pass");
  EXPECT_EQ(records[0].target.detail, ratio.detail);
  EXPECT_FALSE(records[0].lower_is_better());
  EXPECT_EQ(records[1].target.verdict, "shown");
  EXPECT_TRUE(records[1].lower_is_better());
  EXPECT_EQ(records[1].blocks.values(), (std::vector<double>{0, 2}))
      << "no record is below nothing";
  EXPECT_FALSE(records[2].measured());
  EXPECT_LT(records[2].missing.size(), 500u) << "or who reads it refuses the file";
  EXPECT_EQ(records[2].target.sense, "");
  EXPECT_TRUE(std::isnan(records[2].target.value));
}

/// A tree as the kernel's, of the devices that a test names.
class ListedDevices : public ::testing::Test {
 protected:
  void add(const std::string& name, const std::string& type, const std::string& state,
           const std::string& link) {
    const std::string port = name + "/ports/1/";
    write(name + "/node_type", type);
    write(port + "state", state);
    write(port + "link_layer", link);
  }
  void add_gid(const std::string& name, int index, const std::string& gid,
               const std::string& type) {
    const std::string port = name + "/ports/1/", number = std::to_string(index);
    write(port + "gids/" + number, gid);
    write(port + "gid_attrs/types/" + number, type);
  }
  KernelDevice found() const { return find_kernel_device(folder_.path()); }

 private:
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_.path() + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  ScratchFolder folder_;
};

constexpr char kIpv4[] = "0000:0000:0000:0000:0000:ffff:0a00:0001";
constexpr char kLinkLocal[] = "fe80:0000:0000:0000:0000:0000:0000:0001";

TEST_F(ListedDevices, OfThemTheFirstIsTakenThatIsActiveAndNoIwarp) {
  add("rxe1", "1: CA", "1: DOWN", "Ethernet");
  add("rxe2", "1: CA", "4: ACTIVE", "Ethernet");
  add_gid("rxe2", 0, kLinkLocal, "RoCE v2");
  add_gid("rxe2", 1, kIpv4, "IB/RoCE v1");
  add_gid("rxe2", 2, kIpv4, "RoCE v2");
  add("a_siw0", "4: RNIC", "4: ACTIVE", "Ethernet");
  EXPECT_EQ(found().missing, "");
  EXPECT_EQ(found().name, "rxe2");
  EXPECT_EQ(found().gid, "2");
  add("hca", "1: CA", "4: ACTIVE", "InfiniBand");
  EXPECT_EQ(found().name, "hca");
  EXPECT_EQ(found().gid, "") << "which InfiniBand needs not";
}

TEST_F(ListedDevices, OfNoneTheReasonIsSaid) {
  EXPECT_EQ(found().missing, "no kernel RDMA device");
  EXPECT_EQ(find_kernel_device("/nonexistent").missing, "no kernel RDMA device");
  add("siw0", "4: RNIC", "4: ACTIVE", "Ethernet");
  EXPECT_EQ(found().missing,
            "siw0 is iWARP: it connects by rdma_cm alone, which ours do not speak");
  add("t0", "1: CA", "1: DOWN", "Ethernet");
  EXPECT_EQ(found().missing, "port 1 of t0 is not active");
  add("t0", "1: CA", "4: ACTIVE", "Ethernet");
  add_gid("t0", 0, kLinkLocal, "RoCE v2");
  EXPECT_EQ(found().missing, "t0 has no GID of an IPv4 address");
}

TEST(PerftestColumn, IsOfTheLastRowOfNumbers) {
  const std::string text =
      " #bytes #iterations t_min[usec] t_max[usec] t_typical[usec]\n"
      " 2 1000 1.5 9.0 2.25\n 4 1000 1.5 9.0 2.50\n----\nDone 1 2 3 4 5\n";
  EXPECT_DOUBLE_EQ(perftest_column(text, kTypicalLatency), 2.5);
  EXPECT_THROW((void)perftest_column(text, kAverageLatency), std::runtime_error);
  EXPECT_THROW((void)perftest_column("Couldn't connect\n", 0), std::runtime_error);
}

TEST(Verdict, ARatioWithoutATargetIsBetterAsWhatItIsOf) {
  Verdict shown = verdict(Sense::kShown, 0, Blocks({1}));
  shown.of = "ns";
  EXPECT_TRUE(shown.less_is_better());
  for (const char* unit : {"million/s", "GB/s"}) {
    shown.of = unit;
    EXPECT_FALSE(shown.less_is_better()) << unit;
  }
}

Verdict in_row(const char* row, double value) {
  Verdict made = verdict(Sense::kAtMost, 1, Blocks({value}));
  made.row = row;
  return made;
}

TEST(Rows, StandInTheOrderOfTheirNumbersAndNamesBehind) {
  std::vector<Verdict> verdicts = {in_row("mpi", 1), in_row("R10", 1), in_row("R2", 1),
                                   in_row("alloc", 1), in_row("R2", 2)};
  sort_rows(verdicts);
  std::vector<std::string> rows;
  for (const Verdict& one : verdicts) rows.push_back(one.row);
  EXPECT_EQ(rows, (std::vector<std::string>{"R2", "R2", "R10", "mpi", "alloc"}));
  EXPECT_DOUBLE_EQ(verdicts[1].values.median(), 2) << "and within a row as they came";
}

TEST(Rows, AreAllTwentyTargetsAndTheGroupsBeside) {
  const std::string names = "," + row_names() + ",";
  for (int number = 1; number <= 20; ++number)
    EXPECT_THAT(names, HasSubstr(",R" + std::to_string(number) + ","));
  EXPECT_TRUE(names.starts_with(",R1,R2,R3,")) << names;
  for (const char* name :
       {"sizes", "pages", "memory", "alloc", "served", "mpi", "dropin", "kernel"})
    EXPECT_THAT(names, HasSubstr("," + std::string(name) + ","));
}

TEST(Rows, AGroupIsAskedForByItsNameAndARowThatThereIsNotIsRefused) {
  EXPECT_EQ(expanded_rows({"R1"}), std::vector<std::string>{"R1"});
  EXPECT_EQ(expanded_rows({"mpi"}), (std::vector<std::string>{"R4", "R9", "R11", "R12", "mpi"}));
  EXPECT_EQ(expanded_rows({"memory"}), (std::vector<std::string>{"R14", "R16", "memory"}));
  for (const char* name : {"R0", "R21", "r1", "", "MPI"})
    EXPECT_THROW((void)expanded_rows({"R1", name}), std::invalid_argument) << name;
}

TEST(Summary, CountsFiguresByVerdictAndNamesTheirRows) {
  std::vector<Verdict> verdicts = {in_row("R1", 0.5), in_row("R1", 0.6), in_row("R2", 2),
                                   in_row("R3", 0.5)};
  Verdict missing = in_row("R4", 1);
  missing.missing = "mpich is not installed";
  Verdict disturbed = in_row("R5", 1);
  disturbed.disturbed = true;
  verdicts.push_back(missing);
  verdicts.push_back(disturbed);
  const auto found = summary_of(verdicts).counts;
  ASSERT_EQ(found.size(), 4u) << "what there is none of is left out";
  const auto expect = [](const Summary::Count& count, const char* word, std::size_t figures,
                         const char* rows) {
    EXPECT_EQ(count.verdict, word);
    EXPECT_EQ(count.figures, figures);
    EXPECT_EQ(count.rows, rows);
  };
  expect(found[0], "pass", 3, "R1 (2), R3");
  expect(found[1], "short", 1, "R2");
  expect(found[2], "disturbed", 1, "R5");
  expect(found[3], "not measurable here", 1, "R4");
}

TEST(Bench, OfAProgramThatFailsTheRowsAreMissingWithItsWordsAndTheOthersAreMeasured) {
  const BenchOptions options;
  const CorePair cores;
  const std::string folder;
  Bench bench(options, cores, folder);
  Probes probes;
  probes.push_back({"ours", [] { return std::optional(Taken{2, 0, false}); }, {}, {}});
  int runs = 0;
  probes.push_back(bench.theirs("other", true, "other-utils", [&]() -> Taken {
    if (++runs > 1) throw std::runtime_error("other failed: no end within 30 s");
    return {1, 0, false};
  }));
  bench.run(probes, "test", 3);
  EXPECT_EQ(runs, 2) << "it is not asked again";
  EXPECT_EQ(probes[0].blocks.size(), 3u);
  bench.judge_ratio("R3", "ours / other", Sense::kAtMost, 1, probes[0], probes[1], "ns");
  bench.judge_value("R5", "ours", Sense::kAtMost, 1, probes[0], "KiB");
  EXPECT_EQ(bench.verdicts[0].word(), "not measurable here");
  EXPECT_EQ(bench.verdicts[0].missing, "other failed: no end within 30 s");
  EXPECT_EQ(bench.verdicts[1].word(), "short");

  Probes own;
  own.push_back(
      {"ours", []() -> std::optional<Taken> { throw std::runtime_error("bad"); }, {}, {}});
  EXPECT_THROW(bench.run(own, "test", 1), std::runtime_error) << "a fault of ours is one";
}

TEST(StrippedSize, IsWhatStripLeaves) {
  // This program has symbols.
  const auto own = stripped_size(own_path());
  ASSERT_TRUE(own);
  EXPECT_LT(*own, std::filesystem::file_size(own_path()));
  EXPECT_GT(*own, std::filesystem::file_size(own_path()) / 10);
  EXPECT_FALSE(stripped_size("/proc/self/status"));
  EXPECT_FALSE(stripped_size("/nowhere"));
}

}  // namespace
}  // namespace verbatim::perf
