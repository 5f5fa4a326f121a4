// SPDX-License-Identifier: BSD-2-Clause
// What most MPI programs do, in short: a ring of small and of large messages, a reduction, a window.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kLarge = 1 << 20, kRounds = 20 };

static void expect(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "not so: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void ring(int rank, int ranks, unsigned char* buffer) {
  for (int round = 0; round < kRounds; ++round) {
    const int bytes = round % 2 == 0 ? kLarge : 8;
    MPI_Status status;
    memset(buffer, rank == 0 ? round + 1 : 0, (size_t)bytes);
    if (rank == 0) MPI_Send(buffer, bytes, MPI_BYTE, 1, round, MPI_COMM_WORLD);
    MPI_Recv(buffer, kLarge, MPI_BYTE, (rank + ranks - 1) % ranks, round, MPI_COMM_WORLD, &status);
    int got = 0;
    MPI_Get_count(&status, MPI_BYTE, &got);
    expect(got == bytes && buffer[0] == round + 1 && buffer[bytes - 1] == round + 1,
           "a message arrives whole");
    if (rank != 0) MPI_Send(buffer, bytes, MPI_BYTE, (rank + 1) % ranks, round, MPI_COMM_WORLD);
  }
}

static void window(int rank, int ranks) {
  int* cell;
  MPI_Win win;
  MPI_Win_allocate(64, sizeof *cell, MPI_INFO_NULL, MPI_COMM_WORLD, &cell, &win);
  *cell = 0;
  const int mine = 7 + rank;
  MPI_Win_fence(0, win);
  MPI_Put(&mine, 1, MPI_INT, (rank + 1) % ranks, 0, 1, MPI_INT, win);
  MPI_Win_fence(0, win);
  expect(*cell == 7 + (rank + ranks - 1) % ranks, "a put is there after the fence");
  MPI_Win_free(&win);
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  unsigned char* buffer = malloc(kLarge);
  ring(rank, ranks, buffer);
  int sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect(sum == ranks * (ranks - 1) / 2, "a sum over all ranks");
  window(rank, ranks);
  if (rank == 0) printf("exchanged among %d\n", ranks);
  free(buffer);
  MPI_Finalize();
  return 0;
}
