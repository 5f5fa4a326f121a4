// SPDX-License-Identifier: BSD-2-Clause
// What short messages of MPI over shm really execute, instruction by instruction: sends that find
// room in the peer's ring, receives whose message is there. No system call, no locked instruction,
// calls within the library alone and few of them, and so no allocation.
//
// This program is the test, both of its ranks (--rank), and the process that rank 0 steps through
// (--traced), which has the launcher's descriptor from it and is the one that calls MPI.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>

#include "perf/codegen/trace.hpp"
#include "perf/support/process.hpp"
#include "perf/support/scratch_folder.hpp"
#include "tests/mpi/ranks.hpp"

namespace verbatim::perf {
namespace {

/// Until a send finds memory mapped, credits flowing and the line after its own where it will be.
constexpr int kWarm = 2000;
/// Of each call, so that a ring's end and credits that are given back are among them.
constexpr int kTimes = 40;
constexpr int kPeer = 1, kTag = 7;

/// The limits are there to be lowered. Most of the calls: some also give credits back.
struct Step {
  const char* name;
  std::uint32_t most_typically;
  std::uint32_t most;
  std::uint32_t calls;  // direct ones, that of MPI's function among them
};
constexpr Step kSteps[] = {
    {"MPI_Send, 8 B", 325, 350, 7},
    {"MPI_Recv, 8 B, there", 390, 390, 7},
    {"MPI_Send, 40 B", 345, 370, 8},
    {"MPI_Recv, 40 B, there", 410, 410, 8},
    // Of more than a slot of the ring holds.
    {"MPI_Send, 512 B", 680, 1150, 16},
    {"MPI_Recv, 512 B, there", 440, 440, 8},
    {"MPI_Isend, 8 B", 340, 365, 8},
    {"MPI_Wait, sent", 200, 200, 4},
    {"MPI_Irecv, 8 B, there", 475, 475, 9},
    {"MPI_Wait, received", 250, 250, 6},
};

/// How many messages rank 1 has put into rank 0's ring: told beside MPI, since a look by MPI would
/// take them out of it.
std::atomic<int>& told_count(const char* path) {
  const int file = open(path, O_RDWR | O_CREAT, 0600);
  void* const page = file >= 0 && ftruncate(file, 4096) == 0
                         ? mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                         : MAP_FAILED;
  if (page == MAP_FAILED) std::exit(3);
  return *static_cast<std::atomic<int>*>(page);
}

constexpr int kSizes[] = {8, 40, 512};  // of the blocking pairs; 40 B are the most of a slot
using Buffer = std::array<char, 512>;

void answer(const char* path) {
  std::atomic<int>& sent = told_count(path);
  Buffer buffer{};
  const auto answer_one = [&](int bytes) {
    MPI_Recv(buffer.data(), bytes, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(buffer.data(), bytes, MPI_BYTE, 0, kTag, MPI_COMM_WORLD);
    sent.fetch_add(1, std::memory_order_release);
  };
  for (int i = 0; i < kWarm + kTimes; ++i) {
    for (const int bytes : kSizes) answer_one(bytes);
    answer_one(8);  // of the nonblocking pair
  }
}

/// Each round in the same order, that of kSteps.
template <class Count>
void ask(std::atomic<int>& sent, int* told, Count&& count) {
  Buffer buffer{};
  MPI_Request request;
  const auto await = [&] {
    ++*told;
    while (sent.load(std::memory_order_acquire) < *told) sched_yield();
  };
  for (const int bytes : kSizes) {
    count([&] { MPI_Send(buffer.data(), bytes, MPI_BYTE, kPeer, kTag, MPI_COMM_WORLD); });
    await();
    count([&] {
      MPI_Recv(buffer.data(), bytes, MPI_BYTE, kPeer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
  }
  count([&] { MPI_Isend(buffer.data(), 8, MPI_BYTE, kPeer, kTag, MPI_COMM_WORLD, &request); });
  count([&] { MPI_Wait(&request, MPI_STATUS_IGNORE); });
  await();
  count([&] { MPI_Irecv(buffer.data(), 8, MPI_BYTE, kPeer, kTag, MPI_COMM_WORLD, &request); });
  count([&] { MPI_Wait(&request, MPI_STATUS_IGNORE); });
}

int run_traced(const char* path) {
  MPI_Init(nullptr, nullptr);
  std::atomic<int>& sent = told_count(path);
  int told = 0;
  for (int i = 0; i < kWarm; ++i) ask(sent, &told, [](auto&& call) { call(); });
  be_traced();
  for (int i = 0; i < kTimes; ++i) ask(sent, &told, [](auto&& call) { traced(call); });
  MPI_Finalize();
  return 0;
}

int run_rank(const char* path) {
  if (std::string_view(getenv("PMI_RANK")) != "0") {
    MPI_Init(nullptr, nullptr);
    answer(path);
    MPI_Finalize();
    return 0;
  }
  try {
    const TraceResult result = trace_program({own_path(), "--traced", path});
    if (!result.refusal.empty()) std::printf("refused: %s\n", result.refusal.c_str());
    for (const Trace& each : result.traces)
      std::printf("trace %u %u %u %u %u %u\n", each.instructions, each.direct_calls,
                  each.indirect_calls, each.indirect_jumps, each.system_calls, each.locked);
    return 0;
  } catch (const std::exception& failure) {
    std::printf("%s\n", failure.what());
    return 1;
  }
}

TEST(MpiPath, OfShortMessagesLeavesTheKernelAndOtherThreadsAlone) {
  const ScratchFolder folder;
  harness::RanksOptions options;
  options.environment = {{"VERBATIM_FABRIC", folder.path()}};
  const harness::RanksEnd end =
      harness::run_ranks(2, own_path(), {"--rank", folder.path() + "/told"}, options);
  if (const auto at = end.output.find("refused: "); at != std::string::npos)
    GTEST_SKIP() << end.output.substr(at);
  ASSERT_TRUE(end.is_success()) << end.told();
  std::vector<Trace> traces;
  std::istringstream lines(end.output);
  for (std::string line; std::getline(lines, line);) {
    Trace each;
    if (std::sscanf(line.c_str(), "trace %u %u %u %u %u %u", &each.instructions, &each.direct_calls,
                    &each.indirect_calls, &each.indirect_jumps, &each.system_calls,
                    &each.locked) == 6)
      traces.push_back(each);
  }
  ASSERT_EQ(traces.size(), kTimes * std::size(kSteps)) << end.output;
  for (std::size_t step = 0; step < std::size(kSteps); ++step) {
    const char* const name = kSteps[step].name;
    std::vector<std::uint32_t> instructions;
    std::uint32_t calls = 0;
    for (std::size_t i = step; i < traces.size(); i += std::size(kSteps)) {
      EXPECT_EQ(traces[i].system_calls, 0u) << name;
      EXPECT_EQ(traces[i].locked, 0u) << name;
      EXPECT_EQ(traces[i].indirect_calls, 0u) << name;
      instructions.push_back(traces[i].instructions);
      calls = std::max(calls, traces[i].direct_calls);
    }
    std::sort(instructions.begin(), instructions.end());
    const std::uint32_t typical = instructions[instructions.size() / 2];
    std::cout << name << ": " << typical << " instructions, at most " << instructions.back()
              << ", with " << calls << " calls\n";
#ifdef __OPTIMIZE__
    EXPECT_LE(typical, kSteps[step].most_typically) << name;
    EXPECT_LE(instructions.back(), kSteps[step].most) << name;
    EXPECT_LE(calls, kSteps[step].calls) << name;
#endif
  }
}

}  // namespace
}  // namespace verbatim::perf

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--rank") return verbatim::perf::run_rank(argv[2]);
  if (argc == 3 && std::string_view(argv[1]) == "--traced")
    return verbatim::perf::run_traced(argv[2]);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
