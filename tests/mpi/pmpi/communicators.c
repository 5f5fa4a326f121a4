// SPDX-License-Identifier: BSD-2-Clause
// Communicators that come and go, and threads of which each has one.
#include <pthread.h>
#include <stdlib.h>

#include "checks.h"

static void sum_ranks(MPI_Comm comm) {
  int rank, size, sum = -1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  CHECK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
  CHECK(sum == size * (size - 1) / 2);
  int told = rank == size - 1 ? 1234 : 0;
  CHECK(MPI_Bcast(&told, 1, MPI_INT, size - 1, comm) == MPI_SUCCESS);
  CHECK(told == 1234);
  CHECK(MPI_Barrier(comm) == MPI_SUCCESS);
}

void check_communicators(MPI_Comm comm) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  sum_ranks(comm);
  sum_ranks(MPI_COMM_SELF);

  // The ranks in reverse; half of them; some that nobody of the rest is in.
  MPI_Comm reversed, half, none;
  MPI_Comm_split(comm, 0, size - rank, &reversed);
  MPI_Comm_split(comm, rank % 2, 0, &half);
  MPI_Comm_split(comm, rank == 0 ? MPI_UNDEFINED : 1, 0, &none);
  for (int i = 0; i < 5; ++i) {
    sum_ranks(reversed);
    sum_ranks(half);
    if (none != MPI_COMM_NULL) sum_ranks(none);
    sum_ranks(comm);
  }
  int mine = rank, other = -1;
  CHECK(MPI_Bcast(rank == size - 1 ? &mine : &other, 1, MPI_INT, 0, reversed) == MPI_SUCCESS);
  CHECK(rank == size - 1 || other == size - 1);
  MPI_Comm_free(&half);
  if (none != MPI_COMM_NULL) MPI_Comm_free(&none);

  // What a new one is called by may have been an old one's.
  for (int i = 0; i < 8; ++i) {
    MPI_Comm copy, part;
    MPI_Comm_dup(reversed, &copy);
    sum_ranks(copy);
    MPI_Comm_split(copy, (rank + i) % 2, rank, &part);
    sum_ranks(part);
    MPI_Comm_free(&copy);
    sum_ranks(part);
    MPI_Comm_free(&part);
  }
  MPI_Comm_free(&reversed);
  // More than are remembered, all in use.
  enum { kMany = 12 };
  MPI_Comm many[kMany];
  for (int i = 0; i < kMany; ++i) MPI_Comm_dup(comm, &many[i]);
  for (int k = 0; k < 3; ++k)
    for (int i = 0; i < kMany; ++i) sum_ranks(many[i]);
  for (int i = 0; i < kMany; i += 2) MPI_Comm_free(&many[i]);
  for (int i = 1; i < kMany; i += 2) sum_ranks(many[i]);
  // The rest go with MPI_Finalize.
}

/// No rank waits in MPI_Comm_free for others that come there later: after a message of its, or by way
/// of another communicator's.
void check_frees(MPI_Comm comm) {
  int rank, size, word = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Comm one, two, last;
  MPI_Comm_dup(comm, &one);
  MPI_Comm_dup(comm, &two);
  MPI_Comm_dup(comm, &last);
  sum_ranks(one);
  sum_ranks(two);
  sum_ranks(last);
  if (rank > 0) MPI_Recv(&word, 1, MPI_INT, rank - 1, 8, comm, MPI_STATUS_IGNORE);
  MPI_Comm_free(&last);
  if (rank < size - 1) MPI_Send(&word, 1, MPI_INT, rank + 1, 8, comm);
  MPI_Comm_free(rank % 2 == 0 ? &one : &two);
  MPI_Comm_free(rank % 2 == 0 ? &two : &one);

  // Many that live shortly, one after the other and a few at once: there is a team for all of them.
  enum { kShort = 300, kAtOnce = 3 };
  MPI_Comm some[kAtOnce];
  for (int i = 0; i < (size == 2 ? kShort : 6) / kAtOnce; ++i) {
    for (int k = 0; k < kAtOnce; ++k) {
      MPI_Comm_dup(comm, &some[k]);
      CHECK(MPI_Barrier(some[k]) == MPI_SUCCESS);
    }
    for (int k = 0; k < kAtOnce; ++k) MPI_Comm_free(&some[rank == 0 ? k : kAtOnce - 1 - k]);
  }
  sum_ranks(comm);
}

void check_intercommunicator(MPI_Comm comm) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  if (size < 2) return;
  MPI_Comm own, between, merged;
  const int is_upper = rank >= size / 2;
  MPI_Comm_split(comm, is_upper, rank, &own);
  MPI_Intercomm_create(own, 0, comm, is_upper ? 0 : size / 2, 3, &between);
  int sum = -1, wanted = 0;
  for (int r = 0; r < size; ++r)
    if ((r >= size / 2) != is_upper) wanted += r;
  CHECK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, between) == MPI_SUCCESS);
  CHECK(sum == wanted);
  CHECK(MPI_Barrier(between) == MPI_SUCCESS);
  int told = rank == 0 ? 77 : 0;
  CHECK(MPI_Bcast(&told, 1, MPI_INT,
                  is_upper    ? 0
                  : rank == 0 ? MPI_ROOT
                              : MPI_PROC_NULL,
                  between) == MPI_SUCCESS);
  CHECK(!is_upper || told == 77);
  MPI_Intercomm_merge(between, is_upper, &merged);
  sum_ranks(merged);
  MPI_Comm_free(&merged);
  MPI_Comm_free(&between);
  MPI_Comm_free(&own);
}

enum { kThreads = 3 };

static void* use_own(void* context) {
  MPI_Comm comm = *(MPI_Comm*)context;
  for (int i = 0; i < 60; ++i) {
    sum_ranks(comm);
    MPI_Comm copy;
    if (i % 20 != 0) continue;
    MPI_Comm_dup(comm, &copy);
    sum_ranks(copy);
    MPI_Comm_free(&copy);
  }
  return NULL;
}

void check_threads(MPI_Comm comm) {
  MPI_Comm comms[kThreads];
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) MPI_Comm_dup(comm, &comms[i]);
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, use_own, &comms[i]);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  // They go with MPI_Finalize, in whatever order the threads had them first.
}
