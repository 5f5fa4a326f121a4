// SPDX-License-Identifier: BSD-2-Clause
// `verbatim mpi --explain` and `verbatim perf sim`: what the library would choose, and what a model
// says of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/tool_process.hpp"

namespace verbatim::tools {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

/// On any machine alike, if nothing else is said.
Ending tool(const Words& words, Environment environment = {}) {
  environment.emplace("VERBATIM_COLL_COSTS", "built-in");
  return run({VERBATIM_TOOL, "verbatim", environment}, words);
}
std::string told(const Words& words, const Environment& environment = {}) {
  const Ending ending = tool(words, environment);
  EXPECT_EQ(ending.status, 0) << ending.err;
  EXPECT_EQ(ending.err, "");
  return ending.out;
}
void expect_refusal(const Words& words, const std::string& why, const Environment& more = {}) {
  const Ending ending = tool(words, more);
  EXPECT_GT(ending.status, 0);
  EXPECT_EQ(own_lines(ending.err), 1) << ending.err;
  EXPECT_THAT(ending.err, HasSubstr(why));
  EXPECT_EQ(ending.out, "");
}

TEST(Explain, SaysWhichAlgorithmAndWhy) {
  const std::string out = told({"mpi", "--explain", "allreduce", "4096"});
  EXPECT_THAT(out, HasSubstr("allreduce of 4096 bytes (the data of a rank)"));
  EXPECT_THAT(out, ContainsRegex("  2        recursive_doubling +[0-9.]+  short data\n"));
  for (const char* algorithm : {"recursive_doubling", "rabenseifner", "ring", "reduce_bcast"})
    EXPECT_THAT(out, ContainsRegex(std::string("  ") + algorithm + " .*\n +cost: "));
  EXPECT_THAT(out, HasSubstr("for VERBATIM_COLL_ALLREDUCE=<name>"));
}

TEST(Explain, SaysWhatTheTableIsMadeBy) {
  const std::string built_in = told({"mpi", "--explain", "bcast", "-r", "16"});
  EXPECT_THAT(built_in, HasSubstr("Costs are built in, as VERBATIM_COLL_COSTS says"));
  EXPECT_THAT(built_in, ContainsRegex("  far.latency +150\\.000 ns  built in  "));
  EXPECT_THAT(built_in, ContainsRegex("  16 +[0-9]+ KiB +binomial +short data.*\n"
                                      "( +[0-9]+ [KM]iB +[a-z_]+ .*\n)* +any +chain +"));
  // Where rounds take as long as 16 MiB do, no algorithm of more of them wins before.
  const std::string slow =
      told({"mpi", "--explain", "bcast", "-r", "16"},
           {{"VERBATIM_COLL_COSTS", "far.latency:500000,host.overhead:400000"}});
  EXPECT_THAT(slow, ContainsRegex("  far.latency +500000\\.000 ns  user's "));
  EXPECT_THAT(slow, ContainsRegex("  16 +[0-9]+ MiB +binomial +"));
  // Each rank on a node of its own: what a network costs counts.
  EXPECT_THAT(told({"mpi", "--explain", "bcast", "-r", "16", "-n", "1"},
                   {{"VERBATIM_COLL_COSTS", "net.latency:1000000,net.overhead:400000"}}),
              ContainsRegex("on a node each.*\n\n.*\n  16 +[0-9]+ MiB +binomial +"));
}

TEST(Explain, SaysWhatIsComposedOverNodes) {
  const std::string on_nodes = told({"mpi", "--explain", "allreduce", "8", "-r", "64", "-n", "8"});
  EXPECT_THAT(on_nodes, ContainsRegex("64       leaders +[0-9.]+  short data, several ranks"));
  EXPECT_THAT(on_nodes,
              ContainsRegex("table that they make: .* on nodes, .*\n\n.*\n"
                            "  64 +[0-9]+ KiB +leaders .*\n( +[0-9]+ KiB .*\n)* +any +owners"));
}

TEST(Explain, SaysWhatRanksOfOneHostDoInGroups) {
  const std::string lines = told({"mpi", "--explain", "barrier", "-r", "16", "-g", "16"});
  EXPECT_THAT(lines, ContainsRegex("  16       lines +flag and data in one line"));
  const std::string groups = told({"mpi", "--explain", "allreduce", "8", "-r", "16", "-g", "4"});
  EXPECT_THAT(groups,
              ContainsRegex("  16       lines by groups +ranks are bound to several caches"));
  EXPECT_THAT(groups, HasSubstr("cost: (m - 1) h + (G - 1) h' + h"));
  EXPECT_THAT(told({"mpi", "--explain", "bcast", "57", "-r", "16", "-g", "4"}),
              HasSubstr("  16       rooms "));
  EXPECT_THAT(told({"mpi", "--explain", "bcast", "300000", "-r", "16", "-g", "4"}),
              HasSubstr("  16       scatter_allgather "));
  EXPECT_THAT(told({"mpi", "--explain", "scan"}), Not(HasSubstr("Before the table")));
  // What the user says goes before.
  EXPECT_THAT(told({"mpi", "--explain", "barrier", "-r", "16", "-g", "4"},
                   {{"VERBATIM_COLL_BARRIER", "tree"}}),
              HasSubstr("  16       tree "));
}

TEST(Explain, FollowsTheUsersWordWhereItCan) {
  const Environment ring = {{"VERBATIM_COLL_ALLREDUCE", "ring"}};
  EXPECT_THAT(told({"mpi", "--explain", "allreduce", "8", "-r", "5"}, ring),
              ContainsRegex("  5        ring +[0-9.]+  VERBATIM_COLL_ALLREDUCE says so\n"));
  EXPECT_THAT(told({"mpi", "--explain", "allreduce", "8", "-r", "5", "--ordered"}, ring),
              HasSubstr("short data (ring wants an operation that commutes)\n"));
}

TEST(Explain, KnowsEveryCollective) {
  for (const char* name : {"barrier", "bcast", "gather", "scatter", "allgather", "alltoall",
                           "reduce", "allreduce", "reduce_scatter", "scan", "exscan"})
    EXPECT_THAT(told({"mpi", "--explain", name}), HasSubstr("The table that they make: "));
}

TEST(Explain, NamesMistakes) {
  expect_refusal({"mpi"}, "nothing to do");
  expect_refusal({"mpi", "--explain"}, "'--explain' needs a value");
  expect_refusal({"mpi", "--explain", "alreduce"},
                 "no collective 'alreduce' (there are: barrier, bcast,");
  expect_refusal({"mpi", "--explain", "bcast", "-n", "0"}, "'0' is no number of ranks of a node");
  expect_refusal({"mpi", "--explain", "bcast", "-g", "x"}, "'x' is no number of ranks of a group");
  expect_refusal({"mpi", "--explain", "bcast", "-g", "2", "-n", "2"}, "leave out one");
  expect_refusal({"mpi", "--explain", "bcast", "4k"}, "'4k' is no number of bytes");
  expect_refusal({"mpi", "--explain", "bcast", "4", "5"}, "'5' is too much");
  expect_refusal({"mpi", "--explain", "bcast", "-r", "0"}, "'0' is no number of ranks");
  expect_refusal({"mpi", "--explain", "bcast"},
                 "the algorithms of bcast are: binomial, scatter_allgather, chain",
                 {{"VERBATIM_COLL_BCAST", "flood"}});
}

TEST(Sim, SaysThatItsFiguresAreAModels) {
  const std::string out = told({"perf", "sim", "--ranks", "1024", "--collective", "allreduce",
                                "--bytes", "8", "-L", "1000", "-o", "200", "-G", "0"});
  EXPECT_THAT(out, HasSubstr("model: LogGP with L 1000, o 200, g 100 ns, G 0 ns/byte"));
  EXPECT_THAT(out, HasSubstr("Nothing here was measured."));
  // Ten rounds of L + 2 o; each rank sends in each.
  EXPECT_THAT(out, ContainsRegex("\\* recursive_doubling +14\\.000 +10240 +81920 "));
}

TEST(Sim, RunsWhatIsAskedFor) {
  const std::string one =
      told({"perf", "sim", "-c", "bcast", "-r", "13", "-b", "100000", "-a", "chain", "-n", "4"});
  EXPECT_THAT(one, HasSubstr("between nodes of 4 ranks"));
  EXPECT_THAT(one, HasSubstr("chain"));
  EXPECT_THAT(one, Not(HasSubstr("scatter_allgather ")));
  EXPECT_THAT(told({"perf", "sim", "-c", "barrier", "-r", "12"}), HasSubstr("model us"));
  for (const char* name :
       {"gather", "scatter", "allgather", "alltoall", "reduce", "reduce_scatter", "scan", "exscan"})
    EXPECT_THAT(told({"perf", "sim", "-c", name, "-r", "12", "-b", "777"}), HasSubstr("model us"));
  EXPECT_THAT(told({"perf", "sim", "-c", "allgather", "-r", "100000", "-a", "ring"}),
              ContainsRegex("left out: its plans would take [0-9]+ MiB"));
}

TEST(Sim, HasNoiseByChance) {
  const Words words = {"perf", "sim", "-c", "barrier", "-r", "64", "--noise", "50", "--seed"};
  const auto with = [&](const char* seed) {
    Words all = words;
    all.emplace_back(seed);
    return told(all);
  };
  EXPECT_THAT(with("7"), HasSubstr("processors take 50 % longer on the average, by chance 7."));
  EXPECT_EQ(with("7"), with("7"));
  EXPECT_NE(with("7"), with("8"));
  expect_refusal({"perf", "sim", "-N", "much"}, "'much' is no number of percent from 0 to 10000");
}

TEST(Sim, ShowsWhereAlgorithmsCross) {
  const std::string out = told({"perf", "sim", "-c", "allreduce", "-r", "64", "--crossovers"});
  EXPECT_THAT(out, ContainsRegex("  8 +recursive_doubling +[0-9.]+ +as said\n"));
  EXPECT_THAT(out, ContainsRegex("  4194304 +rabenseifner +[0-9.]+ +as said\n"));
}

TEST(Sim, NamesMistakes) {
  expect_refusal({"perf", "sim", "-r", "0"}, "'0' is no number of ranks from 1 to 1048576");
  expect_refusal({"perf", "sim", "-L", "fast"}, "'fast' is no time in ns");
  expect_refusal({"perf", "sim", "-G", "nan"}, "'nan' is no time in ns");
  expect_refusal({"perf", "sim", "-a", "magic"},
                 "allreduce has no algorithm 'magic' (see 'verbatim mpi --explain allreduce')");
  expect_refusal({"perf", "sim", "-x", "-a", "ring"}, "-x is of all algorithms: leave out -a");
  expect_refusal({"perf", "sim", "-x", "-b", "8"}, "-x is of all sizes from 8 B to 4 MiB");
  expect_refusal({"perf", "sim", "-c", "barrier", "-b", "8"}, "a barrier moves no data");
  expect_refusal({"perf", "sim", "now"}, "'now' is too much");
  expect_refusal({"perf", "sim", "-r", "5", "-zx"}, "there is no option '-z'");
  expect_refusal({"perf", "sim", "--ranks=5", "-xz"}, "there is no option '-z'");
  expect_refusal({"perf", "sim", "--magic"}, "there is no option '--magic'");
  expect_refusal({"perf", "sim", "--crossovers=5"}, "'--crossovers=5' takes no value");
  expect_refusal({"perf", "sim", "--ranks"}, "'--ranks' needs a value");
  expect_refusal({"perf", "sim", "-xr"}, "'-r' needs a value");
}

}  // namespace
}  // namespace verbatim::tools
