// SPDX-License-Identifier: BSD-2-Clause
// A program for SimGrid's SMPI, by smpi_test.py: the simulated time of one collective of so many
// bytes, of the last rank to be done. All ranks begin at the same simulated moment. They are threads
// of one process, so a variable of the program is one for all of them.
//
//   smpi_collectives <collective> <bytes> ...     bytes of a slice, or of a vector that is reduced
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double last;

static void wait_until(double when) {
  const double rest = when - MPI_Wtime();
  struct timespec time = {(time_t)rest, (long)((rest - (double)(time_t)rest) * 1e9)};
  if (rest > 0) nanosleep(&time, NULL);
}

/// 0: there is no such collective.
static int call(const char* name, char* from, char* to, int bytes, int ranks) {
  const MPI_Comm all = MPI_COMM_WORLD;
  if (strcmp(name, "barrier") == 0) {
    MPI_Barrier(all);
  } else if (strcmp(name, "bcast") == 0) {
    MPI_Bcast(from, bytes, MPI_BYTE, 0, all);
  } else if (strcmp(name, "gather") == 0) {
    MPI_Gather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, 0, all);
  } else if (strcmp(name, "scatter") == 0) {
    MPI_Scatter(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, 0, all);
  } else if (strcmp(name, "allgather") == 0) {
    MPI_Allgather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, all);
  } else if (strcmp(name, "alltoall") == 0) {
    MPI_Alltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, all);
  } else if (strcmp(name, "reduce") == 0) {
    MPI_Reduce(from, to, bytes / 8, MPI_DOUBLE, MPI_SUM, 0, all);
  } else if (strcmp(name, "allreduce") == 0) {
    MPI_Allreduce(from, to, bytes / 8, MPI_DOUBLE, MPI_SUM, all);
  } else if (strcmp(name, "reduce_scatter") == 0) {
    int* const counts = (int*)malloc((size_t)ranks * sizeof(int));
    for (long i = 0; i < ranks; ++i)
      counts[i] = (int)(bytes / 8 * (i + 1) / ranks - bytes / 8 * i / ranks);
    MPI_Reduce_scatter(from, to, counts, MPI_DOUBLE, MPI_SUM, all);
    free(counts);
  } else {
    return 0;
  }
  return 1;
}

int main(int argc, char** argv) {
  int mine = 0, ranks = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &mine);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  double begin = 1000;
  for (int i = 2; i < argc; ++i, begin += 1000) {
    const int bytes = atoi(argv[i]);
    const int has_slices = strcmp(argv[1], "alltoall") == 0 || strstr(argv[1], "gather") != NULL ||
                           strcmp(argv[1], "scatter") == 0;
    const size_t room = (size_t)bytes * (size_t)(has_slices ? ranks : 1) + 8;
    // What stands in them is nobody's concern, so all ranks have the same memory.
    char* const from = (char*)SMPI_SHARED_MALLOC(room);
    char* const to = (char*)SMPI_SHARED_MALLOC(room);
    if (mine == 0) last = 0;
    wait_until(begin);
    if (!call(argv[1], from, to, bytes, ranks)) return 2;
    const double took = MPI_Wtime() - begin;
    if (took > last) last = took;
    wait_until(begin + 500);
    if (mine == 0) printf("took %d %.3f\n", bytes, last * 1e9);
    SMPI_SHARED_FREE(from);
    SMPI_SHARED_FREE(to);
  }
  MPI_Finalize();
  return 0;
}
