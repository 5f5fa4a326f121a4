// SPDX-License-Identifier: BSD-2-Clause
// What the programs of point-to-point tests share. A program has several parts, chosen by its
// arguments.
#ifndef TESTS_MPI_POINT_TO_POINT_H
#define TESTS_MPI_POINT_TO_POINT_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

#define CHECK(condition)                                                                         \
  do {                                                                                           \
    if (!(condition)) {                                                                          \
      fprintf(stderr, "rank %d of %d: %s:%d: %s\n", rank, size, __FILE__, __LINE__, #condition); \
      MPI_Abort(MPI_COMM_WORLD, 3);                                                              \
    }                                                                                            \
  } while (0)
#define OK(call) CHECK((call) == MPI_SUCCESS)

struct part {
  const char* name;
  void (*run)(void);
};

static inline int run_part(const struct part* parts, int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  int count = 0;
  for (int word = 1; word < argc; ++word)
    for (const struct part* each = parts; each->name != NULL; ++each)
      if (strcmp(each->name, argv[word]) == 0) {
        each->run();
        ++count;
      }
  if (count != 0 && count == argc - 1) {
    OK(MPI_Finalize());
    return 0;
  }
  return 2;
}

#endif
