// SPDX-License-Identifier: BSD-2-Clause
// `verbatim perf coll` within this process, one rank, between MPI's profiling interface and the test:
// what it calls in which order, and what it says of a result that is wrong.
#include <getopt.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "perf/cli/perf_coll_run.hpp"

namespace {

/// What is called between MPI_Init and MPI_Finalize: B, a barrier; c, the collective.
std::string calls;
std::set<const void*> buffers;
int wrong_ones = 0;  // so many are given a wrong byte

}  // namespace

extern "C" int MPI_Barrier(MPI_Comm comm) {
  calls += 'B';
  return PMPI_Barrier(comm);
}

extern "C" int MPI_Allgather(const void* given, int count, MPI_Datatype type, void* taken,
                             int taken_count, MPI_Datatype taken_type, MPI_Comm comm) {
  calls += 'c';
  buffers.insert(given);
  const int error = PMPI_Allgather(given, count, type, taken, taken_count, taken_type, comm);
  if (wrong_ones > 0) {
    --wrong_ones;
    static_cast<unsigned char*>(taken)[3] ^= 1;
  }
  return error;
}

namespace verbatim::cli {
namespace {

using ::testing::HasSubstr;

class PerfCollRun : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { MPI_Init(nullptr, nullptr); }
  static void TearDownTestSuite() { MPI_Finalize(); }

  struct Ended {
    int status;
    std::string out, err;
  };
  static Ended run(std::vector<std::string> words) {
    words.insert(words.begin(), "perf coll");
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    optind = 0;
    const CollOptions options = parse_coll(static_cast<int>(words.size()), arguments.data());
    calls.clear();
    buffers.clear();
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    Ended ended;
    ended.status = measure_coll(options, 0, 1);
    ended.out = ::testing::internal::GetCapturedStdout();
    ended.err = ::testing::internal::GetCapturedStderr();
    return ended;
  }
};

TEST_F(PerfCollRun, ABarrierGoesBeforeEachCallThatIsMeasured) {
  EXPECT_EQ(run({"allgather", "-s", "8", "-i", "3", "-x", "2"}).status, 0);
  EXPECT_EQ(calls, "BcBcBcBcBc");
}

TEST_F(PerfCollRun, AWrongResultIsToldOnceCountedAndAFailure) {
  const auto with = [](int wrong) {
    wrong_ones = wrong;
    return run({"allgather", "-s", "8", "-i", "5", "-x", "0", "-c"});
  };
  const Ended right = with(0);
  EXPECT_EQ(right.status, 0);
  EXPECT_EQ(right.err, "");
  EXPECT_THAT(right.out, ::testing::EndsWith(" 0\n"));
  const Ended wrong = with(3);
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("rank 0: allgather of 8 bytes: byte 3 of what rank 0 gave is "));
  EXPECT_EQ(std::count(wrong.err.begin(), wrong.err.end(), '\n'), 1);
  EXPECT_THAT(wrong.out, ::testing::EndsWith(" 3\n"));
  // Nobody has asked.
  wrong_ones = 5;
  EXPECT_EQ(run({"allgather", "-s", "8", "-i", "5", "-x", "0"}).status, 0);
}

TEST_F(PerfCollRun, OneBufferIsTheSameInEachCall) {
  (void)run({"allgather", "-s", "8", "-i", "9", "-x", "0"});
  EXPECT_EQ(buffers.size(), 4u);
  (void)run({"allgather", "-s", "8", "-i", "9", "-x", "0", "--same-buffer"});
  EXPECT_EQ(buffers.size(), 1u);
}

}  // namespace
}  // namespace verbatim::cli
