// SPDX-License-Identifier: BSD-2-Clause
// Derived types. MPI compares signatures, not types: one rank may send eight ints where another
// receives one type of eight, with holes or in another order. Each such call is one for all ranks.
#include <stdlib.h>
#include <string.h>

#include "checks.h"

enum { kBlock = 8 };

/// Eight ints of sixteen, every second one.
static MPI_Datatype spread_type(void) {
  MPI_Datatype type;
  MPI_Type_vector(kBlock, 1, 2, MPI_INT, &type);
  MPI_Datatype resized;
  MPI_Type_create_resized(type, 0, 2 * kBlock * (MPI_Aint)sizeof(int), &resized);
  MPI_Type_commit(&resized);
  MPI_Type_free(&type);
  return resized;
}

/// Eight ints from the last to the first: as large as they are, and not as they lie.
static MPI_Datatype reversed_type(void) {
  int lengths[kBlock], places[kBlock];
  for (int i = 0; i < kBlock; ++i) {
    lengths[i] = 1;
    places[i] = kBlock - 1 - i;
  }
  MPI_Datatype type;
  MPI_Type_indexed(kBlock, lengths, places, MPI_INT, &type);
  MPI_Type_commit(&type);
  return type;
}

static void bcast_between_types(MPI_Comm comm, int blocks) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Datatype spread = spread_type(), reversed = reversed_type();
  int* const data = calloc(2 * kBlock * (size_t)blocks, sizeof(int));
  for (int root = 0; root < size; ++root) {
    memset(data, 0xff, 2 * kBlock * (size_t)blocks * sizeof(int));
    // Rank 0 has plain ints, the next every second one, the next the last first, and so on.
    const int kind = rank % 3;
    if (rank == root)
      for (int i = 0; i < kBlock * blocks; ++i)
        data[kind == 0   ? i
             : kind == 1 ? 2 * i
                         : i / kBlock * kBlock + kBlock - 1 - i % kBlock] = 1000 * root + i;
    CHECK(MPI_Bcast(data, kind == 0 ? kBlock * blocks : blocks,
                    kind == 0   ? MPI_INT
                    : kind == 1 ? spread
                                : reversed,
                    root, comm) == MPI_SUCCESS);
    for (int i = 0; i < kBlock * blocks; ++i) {
      const int got = data[kind == 0   ? i
                           : kind == 1 ? 2 * i
                                       : i / kBlock * kBlock + kBlock - 1 - i % kBlock];
      CHECK(got == 1000 * root + i);
      if (kind == 1) CHECK(data[2 * i + 1] == -1);  // holes are nobody's
    }
  }
  free(data);
  MPI_Type_free(&spread);
  MPI_Type_free(&reversed);
}

static void exchange_between_types(MPI_Comm comm) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Datatype spread = spread_type();
  const int is_odd = rank % 2;
  int* const wide = malloc(2 * kBlock * (size_t)size * sizeof(int));
  int* const plain = malloc(kBlock * (size_t)size * sizeof(int));

  // Odd ranks send with holes; even ones receive with holes.
  memset(wide, 0xff, 2 * kBlock * (size_t)size * sizeof(int));
  for (int i = 0; i < kBlock; ++i) plain[i] = 100 * rank + i;
  if (is_odd) {
    for (int i = 0; i < kBlock; ++i) wide[2 * i] = 100 * rank + i;
    CHECK(MPI_Allgather(wide, 1, spread, plain, kBlock, MPI_INT, comm) == MPI_SUCCESS);
    for (int i = 0; i < kBlock * size; ++i) CHECK(plain[i] == 100 * (i / kBlock) + i % kBlock);
  } else {
    CHECK(MPI_Allgather(plain, kBlock, MPI_INT, wide, 1, spread, comm) == MPI_SUCCESS);
    for (int i = 0; i < kBlock * size; ++i) {
      CHECK(wide[2 * i] == 100 * (i / kBlock) + i % kBlock);
      CHECK(wide[2 * i + 1] == -1);
    }
  }

  // In place, with holes at all ranks.
  memset(wide, 0xff, 2 * kBlock * (size_t)size * sizeof(int));
  for (int i = 0; i < kBlock; ++i) wide[2 * (rank * kBlock + i)] = 7 * rank + i;
  CHECK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, wide, 1, spread, comm) == MPI_SUCCESS);
  for (int i = 0; i < kBlock * size; ++i) CHECK(wide[2 * i] == 7 * (i / kBlock) + i % kBlock);

  // To each another block.
  memset(wide, 0xff, 2 * kBlock * (size_t)size * sizeof(int));
  for (int i = 0; i < kBlock * size; ++i) plain[i] = 1000 * rank + i;
  if (is_odd) {
    for (int i = 0; i < kBlock * size; ++i) wide[2 * i] = 1000 * rank + i;
    CHECK(MPI_Alltoall(wide, 1, spread, plain, kBlock, MPI_INT, comm) == MPI_SUCCESS);
  } else {
    CHECK(MPI_Alltoall(plain, kBlock, MPI_INT, wide, 1, spread, comm) == MPI_SUCCESS);
  }
  for (int i = 0; i < kBlock * size; ++i) {
    const int got = is_odd ? plain[i] : wide[2 * i];
    CHECK(got == 1000 * (i / kBlock) + rank * kBlock + i % kBlock);
  }
  for (int i = 0; i < kBlock * size; ++i) wide[2 * i] = 1000 * rank + i;
  CHECK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, wide, 1, spread, comm) == MPI_SUCCESS);
  for (int i = 0; i < kBlock * size; ++i)
    CHECK(wide[2 * i] == 1000 * (i / kBlock) + rank * kBlock + i % kBlock);
  free(wide);
  free(plain);
  MPI_Type_free(&spread);
}

/// A type of absolute addresses, whose buffer is MPI_BOTTOM; one without data.
static void bcast_unusual_types(MPI_Comm comm) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  int first = rank == 0 ? 11 : 0;
  double second = rank == 0 ? 2.5 : 0;
  int lengths[2] = {1, 1};
  MPI_Aint places[2];
  MPI_Datatype parts[2] = {MPI_INT, MPI_DOUBLE}, type;
  MPI_Get_address(&first, &places[0]);
  MPI_Get_address(&second, &places[1]);
  MPI_Type_create_struct(2, lengths, places, parts, &type);
  MPI_Type_commit(&type);
  CHECK(MPI_Bcast(MPI_BOTTOM, 1, type, 0, comm) == MPI_SUCCESS);
  CHECK(first == 11 && second == 2.5);
  MPI_Type_free(&type);

  MPI_Type_contiguous(0, MPI_INT, &type);
  MPI_Type_commit(&type);
  CHECK(MPI_Bcast(&first, 5, type, 0, comm) == MPI_SUCCESS);
  MPI_Type_free(&type);
}

void check_derived(MPI_Comm comm) {
  bcast_between_types(comm, 1);
  bcast_between_types(comm, 3000);
  exchange_between_types(comm);
  bcast_unusual_types(comm);
}
