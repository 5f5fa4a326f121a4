// SPDX-License-Identifier: BSD-2-Clause
// A program of MPI, compiled by whatever MPI is there: `program <part>`; exit status 0, and a line of
// rank 0, when all was right at all ranks.
//
//   elements, communicators, threads, rest   what the other files check, and what is left
//   counted    as many calls of each kind as pmpi.py knows
//   killed     rank 1 dies in the midst of collectives
//   differ     ranks name different lengths, and are told
//   nothing    no collective
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

int checks_failed = 0;

void check_that(int is_so, const char* file, int line, const char* text) {
  if (is_so || ++checks_failed > 20) return;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  fprintf(stderr, "rank %d: %s:%d: %s\n", rank, file, line, text);
}

/// A message whose sender makes nothing but collectives that nobody waits long in, until it has gone.
static void check_short_calls(MPI_Comm comm, char* memory, int bytes) {
  enum { kMostCalls = 30000 };  // many times what it takes
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  if (size == 1) return;
  MPI_Request request = MPI_REQUEST_NULL;
  memset(memory, rank + 3, bytes);
  if (rank == 0) MPI_Isend(memory, bytes, MPI_BYTE, 1, 6, comm, &request);
  if (rank == 1) MPI_Irecv(memory, bytes, MPI_BYTE, 0, 6, comm, &request);
  int are_all_done = 0;
  for (int i = 0; !are_all_done && i < kMostCalls; ++i) {
    int is_done = 1;
    if (rank == 1) MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
    CHECK(MPI_Allreduce(&is_done, &are_all_done, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS);
  }
  CHECK(are_all_done);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank == 1) CHECK(memory[0] == 3 && memory[bytes - 1] == 3);
}

/// A message that is under way while its sender waits in a collective: the receiver comes there only
/// when it has it.
void check_progress(MPI_Comm comm) {
  enum { kBytes = 8 << 20 };
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  char* const memory = malloc(kBytes);
  for (int i = 0; i < 3 && size > 1; ++i) {
    MPI_Request request = MPI_REQUEST_NULL;
    memset(memory, rank + 1, kBytes);
    if (rank == 0) MPI_Isend(memory, kBytes, MPI_BYTE, 1, 5, comm, &request);
    if (rank == 1) MPI_Recv(memory, kBytes, MPI_BYTE, 0, 5, comm, MPI_STATUS_IGNORE);
    CHECK(MPI_Barrier(comm) == MPI_SUCCESS);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 1) CHECK(memory[0] == 1 && memory[kBytes - 1] == 1);
  }
  check_short_calls(comm, memory, kBytes);
  free(memory);

  // Nonblocking ones are the MPI's, and go on beside those that are taken.
  int sums[2] = {-1, -1};
  MPI_Request request;
  MPI_Iallreduce(&rank, &sums[0], 1, MPI_INT, MPI_SUM, comm, &request);
  CHECK(MPI_Allreduce(&rank, &sums[1], 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(sums[0] == size * (size - 1) / 2 && sums[1] == sums[0]);
#if MPI_VERSION >= 4
  // One call with large counts and the other without.
  if (rank % 2 == 0)
    CHECK(MPI_Allreduce_c(&rank, &sums[0], 1, MPI_INT, MPI_MAX, comm) == MPI_SUCCESS);
  else
    CHECK(MPI_Allreduce(&rank, &sums[0], 1, MPI_INT, MPI_MAX, comm) == MPI_SUCCESS);
  CHECK(sums[0] == size - 1);
#endif
}

static int class_of(int error) {
  int class = -1;
  MPI_Error_class(error, &class);
  return class;
}

/// What no MPI does is refused by the one that there is, in its own words, and the next call is good.
void check_arguments(MPI_Comm comm) {
  int size, rank, sum = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Comm own;
  MPI_Comm_dup(comm, &own);
  MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
  for (int i = 0; i < 2; ++i) {
    int data[4] = {1, 2, 3, 4};
    CHECK(class_of(MPI_Bcast(data, -1, MPI_INT, 0, own)) == MPI_ERR_COUNT);
    CHECK(class_of(MPI_Bcast(data, 1, MPI_INT, size, own)) == MPI_ERR_ROOT);
    CHECK(class_of(MPI_Bcast(data, 1, MPI_DATATYPE_NULL, 0, own)) == MPI_ERR_TYPE);
    CHECK(class_of(MPI_Allreduce(data, data + 1, 1, MPI_INT, MPI_OP_NULL, own)) == MPI_ERR_OP);
    CHECK(class_of(MPI_Reduce(data, data + 1, 1, MPI_INT, MPI_SUM, -2, own)) == MPI_ERR_ROOT);
    CHECK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, own) == MPI_SUCCESS);
    CHECK(sum == size * (size - 1) / 2);
  }
  MPI_Comm_free(&own);
}

static int sum_in_finalize(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  int one = 1, sum = 0, size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (sum != size) abort();
  return MPI_SUCCESS;
}

/// MPI_Finalize calls it first of all, while MPI is whole.
static void use_collectives_in_finalize(void) {
  int key;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, sum_in_finalize, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
}

static void call_counted(MPI_Comm comm) {
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  double in[64] = {1}, out[64 * 8];
  char bytes[64 * 8];
  memset(bytes, rank, sizeof bytes);
  MPI_Op op;
  for (int i = 0; i < 10; ++i) MPI_Barrier(comm);
  for (int i = 0; i < 11; ++i) MPI_Bcast(in, 4, MPI_DOUBLE, 0, comm);
  for (int i = 0; i < 12; ++i) MPI_Reduce(in, out, 2, MPI_DOUBLE, MPI_SUM, 0, comm);
  for (int i = 0; i < 13; ++i) MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_MAX, comm);
  for (int i = 0; i < 14; ++i) MPI_Allgather(in, 3, MPI_DOUBLE, out, 3, MPI_DOUBLE, comm);
  for (int i = 0; i < 15; ++i) MPI_Alltoall(bytes, 5, MPI_BYTE, out, 5, MPI_BYTE, comm);
  // And some that are not taken: of one rank, of an operation and of a type.
  for (int i = 0; i < 2; ++i) MPI_Barrier(MPI_COMM_SELF);
  MPI_Op_create((MPI_User_function*)abort, 1, &op);
  for (int i = 0; i < 3; ++i) MPI_Allreduce(in, out, 0, MPI_DOUBLE, op, comm);
  MPI_Op_free(&op);
  for (int i = 0; i < 4; ++i) MPI_Reduce(in, out, 1, MPI_2INT, MPI_MINLOC, 0, comm);
}

static void be_killed(MPI_Comm comm) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  double in[512] = {1}, out[512];
  for (long i = 0; i < 1000000000; ++i) {
    if (rank == 1 && i == 1000) raise(SIGKILL);
    MPI_Allreduce(in, out, 512, MPI_DOUBLE, MPI_SUM, comm);
  }
}

/// All of them are told, in this call and in each that follows; never is a part of it taken for all.
static void differ(MPI_Comm comm) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int data[2] = {rank, rank}, sums[2];
  CHECK(MPI_Allreduce(data, sums, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
  for (int i = 0; i < 2; ++i)
    CHECK(class_of(MPI_Allreduce(data, sums, rank == 0 ? 1 : 2, MPI_INT, MPI_SUM, comm)) ==
          MPI_ERR_TRUNCATE);
}

static void do_nothing(MPI_Comm comm) { (void)comm; }

static void check_elements(MPI_Comm comm) {
  check_reductions(comm);
  check_movement(comm);
  check_derived(comm);
}

static void check_comings_and_goings(MPI_Comm comm) {
  check_communicators(comm);
  check_frees(comm);
  check_intercommunicator(comm);
}

/// (Between threads MPICH moves messages in another way.)
static void check_with_threads(MPI_Comm comm) {
  check_threads(comm);
  check_progress(comm);
}

static void check_rest(MPI_Comm comm) {
  check_operations(comm);
  check_progress(comm);
  check_arguments(comm);
  use_collectives_in_finalize();
}

static const struct {
  const char* name;
  void (*check)(MPI_Comm comm);
  int level;
} kParts[] = {
    {"elements", check_elements, MPI_THREAD_SINGLE},
    {"communicators", check_comings_and_goings, MPI_THREAD_SINGLE},
    {"threads", check_with_threads, MPI_THREAD_MULTIPLE},
    {"rest", check_rest, MPI_THREAD_FUNNELED},
    {"counted", call_counted, MPI_THREAD_SINGLE},
    {"killed", be_killed, MPI_THREAD_SINGLE},
    {"differ", differ, MPI_THREAD_SINGLE},
    {"nothing", do_nothing, MPI_THREAD_SINGLE},
};

int main(int argc, char** argv) {
  const char* const name = argc > 1 ? argv[1] : "";
  for (size_t i = 0; i < sizeof kParts / sizeof *kParts; ++i) {
    if (strcmp(name, kParts[i].name) != 0) continue;
    int provided, all_failed = 0, rank, size;
    MPI_Init_thread(&argc, &argv, kParts[i].level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (provided < kParts[i].level) {
      if (rank == 0) printf("no such threads\n");
    } else {
      kParts[i].check(MPI_COMM_WORLD);
      PMPI_Reduce(&checks_failed, &all_failed, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
      if (rank == 0 && all_failed == 0) printf("all is right at %d ranks\n", size);
    }
    MPI_Finalize();
    return checks_failed != 0;
  }
  fprintf(stderr, "no part '%s'\n", name);
  return 2;
}
