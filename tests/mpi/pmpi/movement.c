// SPDX-License-Identifier: BSD-2-Clause
// Broadcasts, allgathers and all-to-alls of predefined types, whose bytes say whose they are.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "checks.h"

static const int kCounts[] = {0, 1, 3, 1000, 30000};
enum { kCountsOf = sizeof kCounts / sizeof *kCounts, kMostCount = 30000, kMostBytes = 16 };

/// What rank `from` has for rank `to`.
static void fill(unsigned char* at, size_t bytes, int from, int to, int seed) {
  for (size_t i = 0; i < bytes; ++i)
    at[i] = (unsigned char)(from * 31 + to * 17 + seed * 11 + (int)(i % 251));
}

static int is_filled(const unsigned char* at, size_t bytes, int from, int to, int seed) {
  for (size_t i = 0; i < bytes; ++i)
    if (at[i] != (unsigned char)(from * 31 + to * 17 + seed * 11 + (int)(i % 251))) return 0;
  return 1;
}

static void move_elements(MPI_Comm comm, MPI_Datatype type, size_t each, int count,
                          unsigned char* out, unsigned char* in) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const size_t bytes = (size_t)count * each;
  for (int root = 0; root < size; ++root) {
    fill(out, bytes, rank, 0, root);
    CHECK(MPI_Bcast(out, count, type, root, comm) == MPI_SUCCESS);
    CHECK(is_filled(out, bytes, root, 0, root));
  }

  fill(out, bytes, rank, 0, 1);
  memset(in, 0x5a, bytes * (size_t)size);
  CHECK(MPI_Allgather(out, count, type, in, count, type, comm) == MPI_SUCCESS);
  for (int r = 0; r < size; ++r) CHECK(is_filled(in + bytes * (size_t)r, bytes, r, 0, 1));
  memset(in, 0x5a, bytes * (size_t)size);
  fill(in + bytes * (size_t)rank, bytes, rank, 0, 2);
  CHECK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, count, type, comm) == MPI_SUCCESS);
  for (int r = 0; r < size; ++r) CHECK(is_filled(in + bytes * (size_t)r, bytes, r, 0, 2));

  for (int r = 0; r < size; ++r) fill(out + bytes * (size_t)r, bytes, rank, r, 3);
  memset(in, 0x5a, bytes * (size_t)size);
  CHECK(MPI_Alltoall(out, count, type, in, count, type, comm) == MPI_SUCCESS);
  for (int r = 0; r < size; ++r) CHECK(is_filled(in + bytes * (size_t)r, bytes, r, rank, 3));
  CHECK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, count, type, comm) == MPI_SUCCESS);
  for (int r = 0; r < size; ++r) CHECK(is_filled(out + bytes * (size_t)r, bytes, r, rank, 3));
}

void check_movement(MPI_Comm comm) {
  const struct {
    MPI_Datatype type;
    size_t bytes;
  } kTypes[] = {{MPI_BYTE, 1},
                {MPI_CHAR, 1},
                {MPI_SHORT, 2},
                {MPI_INT, 4},
                {MPI_WCHAR, sizeof(wchar_t)},
                {MPI_FLOAT, 4},
                {MPI_2INT, 8},
                {MPI_DOUBLE, 8},
                {MPI_UINT64_T, 8},
                {MPI_C_DOUBLE_COMPLEX, 16},
                {MPI_LONG_DOUBLE, sizeof(long double)},
                {MPI_C_BOOL, 1}};
  int size;
  MPI_Comm_size(comm, &size);
  unsigned char* const out = malloc((size_t)kMostCount * kMostBytes * (size_t)size);
  unsigned char* const in = malloc((size_t)kMostCount * kMostBytes * (size_t)size);
  for (size_t t = 0; t < sizeof kTypes / sizeof *kTypes; ++t)
    for (int c = 0; c < kCountsOf; ++c)
      move_elements(comm, kTypes[t].type, kTypes[t].bytes, kCounts[c], out, in);
  free(out);
  free(in);
}
