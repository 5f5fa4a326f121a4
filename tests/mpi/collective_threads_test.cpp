// SPDX-License-Identifier: BSD-2-Clause
// Collectives of several threads at once, each on communicators of its own (MPI 5.0 section 11.6.2).
#include <thread>

#include "tests/mpi/in_ranks.hpp"

namespace verbatim::mpi {
namespace {

constexpr int kThreads = 3;
constexpr int kRounds = 40;

/// Each round of a thread: a new communicator of its own, used and freed.
void make_and_use(MPI_Comm of_thread, int thread) {
  const int size = size_of(of_thread);
  for (int round = 0; round < kRounds; ++round) {
    MPI_Comm dup;
    if (MPI_Comm_dup(of_thread, &dup) != MPI_SUCCESS) return;
    const int mine = thread + 1;
    int sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, dup);
    EXPECT_EQ(sum, mine * size) << "messages of two threads' communicators have met";
    MPI_Comm_free(&dup);
  }
}

TEST(Threads, MakeCommunicatorsAtTheSameTime) {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  ASSERT_EQ(level, MPI_THREAD_MULTIPLE);
  MPI_Comm comms[kThreads];
  for (MPI_Comm& each : comms) MPI_Comm_dup(MPI_COMM_WORLD, &each);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(make_and_use, comms[i], i);
  for (std::thread& each : threads) each.join();
  for (MPI_Comm& each : comms) MPI_Comm_free(&each);
}

}  // namespace
}  // namespace verbatim::mpi
