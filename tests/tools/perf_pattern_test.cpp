// SPDX-License-Identifier: BSD-2-Clause
// `verbatim perf pattern` under the launchers that are here: every pattern to its end, and what goes
// wrong in one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/tools/perf_output.hpp"
#include "tests/tools/perf_pair.hpp"

namespace verbatim::tools {
namespace {

using ::testing::HasSubstr;

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
    const Ending ending = job("3", {pattern, "-n", "20", "-s", "4096"});
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
  const auto all = perf_rows(job("2", {"ring", "-n", "5", "-a"}).out);
  EXPECT_EQ(all.size(), 23u);
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
