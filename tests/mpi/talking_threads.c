/* SPDX-License-Identifier: BSD-2-Clause
 * MPI_THREAD_MULTIPLE (MPI 5.0 section 11.6): four threads of each rank talk at once. */
#include <pthread.h>

#include "point_to_point.h"

enum { kThreads = 4, kRounds = 300, kLong = 40000 };

static void* talk(void* argument) {
  const int thread = *(const int*)argument;
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  char* out = malloc(kLong);
  char* in = malloc(kLong);
  memset(out, thread, kLong);
  for (int i = 0; i < kRounds; ++i) {
    int said = i * kThreads + thread, heard = -1;
    const int bytes = i % 9 == 0 ? kLong : 4;
    MPI_Request requests[2];
    OK(MPI_Sendrecv(&said, 1, MPI_INT, next, thread, &heard, 1, MPI_INT, previous, thread,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(heard == said);
    OK(MPI_Irecv(in, bytes, MPI_CHAR, previous, 100 + thread, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(out, bytes, MPI_CHAR, next, 100 + thread, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(memcmp(in, out, (size_t)bytes) == 0);
  }
  free(in);
  free(out);
  return NULL;
}

int main(int argc, char** argv) {
  int provided = -1, flag = 0;
  OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
  CHECK(provided == MPI_THREAD_MULTIPLE);
  OK(MPI_Query_thread(&provided));
  CHECK(provided == MPI_THREAD_MULTIPLE);
  OK(MPI_Is_thread_main(&flag));
  CHECK(flag);
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  pthread_t threads[kThreads];
  int numbers[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    numbers[i] = i;
    CHECK(pthread_create(&threads[i], NULL, talk, &numbers[i]) == 0);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  OK(MPI_Finalize());
  OK(MPI_Finalized(&flag));
  CHECK(flag);
  return 0;
}
