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

/// Called with nobody holding the library back: others go on meanwhile.
void add(void* in, void* inout, int* length, MPI_Datatype*) {
  std::this_thread::yield();
  for (int i = 0; i < *length; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

/// Two at once on each thread's communicator, with an operation of the program, and a message.
void start_and_end(MPI_Comm comm, MPI_Op op, int thread) {
  const int size = size_of(comm);
  const int rank = rank_in(comm);
  for (int round = 0; round < kRounds; ++round) {
    const int mine[2] = {thread, rank};
    int sums[2] = {};
    int prefix = 0;
    int heard = -1;
    MPI_Request requests[3];
    MPI_Iallreduce(mine, sums, 2, MPI_INT, op, comm, &requests[0]);
    MPI_Iscan(&mine[1], &prefix, 1, MPI_INT, op, comm, &requests[1]);
    MPI_Isendrecv(&round, 1, MPI_INT, (rank + 1) % size, thread, &heard, 1, MPI_INT,
                  (rank + size - 1) % size, thread, comm, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    EXPECT_EQ(sums[0], thread * size);
    EXPECT_EQ(sums[1], size * (size - 1) / 2);
    EXPECT_EQ(prefix, rank * (rank + 1) / 2);
    EXPECT_EQ(heard, round);
  }
}

TEST(Threads, StartCollectivesAtTheSameTime) {
  MPI_Comm comms[kThreads];
  for (MPI_Comm& each : comms) MPI_Comm_dup(MPI_COMM_WORLD, &each);
  MPI_Op op;
  MPI_Op_create(add, 1, &op);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(start_and_end, comms[i], op, i);
  for (std::thread& each : threads) each.join();
  MPI_Op_free(&op);
  for (MPI_Comm& each : comms) MPI_Comm_free(&each);
}

}  // namespace
}  // namespace verbatim::mpi
