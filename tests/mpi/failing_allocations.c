/* SPDX-License-Identifier: BSD-2-Clause
 * Each allocation of one rank failing once: the call that wanted it answers MPI_ERR_NO_MEM, writes
 * no result, and leaves nothing behind that the next one stumbles over. */
#include <errno.h>
#include <string.h>

#include "point_to_point.h"

/* The linker leads the archives' allocations here. */
static long until_failure = -1;
static int has_failed = 0;

static int fails(void) {
  if (until_failure < 0 || until_failure-- != 0) return 0;
  has_failed = 1;
  errno = ENOMEM;
  return 1;
}
void* __real_malloc(size_t bytes);
void* __real_calloc(size_t count, size_t bytes);
void* __real_realloc(void* memory, size_t bytes);
void* __real_aligned_alloc(size_t alignment, size_t bytes);
char* __real_strdup(const char* text);
char* __real_strndup(const char* text, size_t most);
void* __wrap_malloc(size_t bytes);
void* __wrap_calloc(size_t count, size_t bytes);
void* __wrap_realloc(void* memory, size_t bytes);
void* __wrap_aligned_alloc(size_t alignment, size_t bytes);
char* __wrap_strdup(const char* text);
char* __wrap_strndup(const char* text, size_t most);
void* __wrap_malloc(size_t bytes) { return fails() ? NULL : __real_malloc(bytes); }
void* __wrap_calloc(size_t count, size_t bytes) {
  return fails() ? NULL : __real_calloc(count, bytes);
}
void* __wrap_realloc(void* memory, size_t bytes) {
  return fails() ? NULL : __real_realloc(memory, bytes);
}
void* __wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return fails() ? NULL : __real_aligned_alloc(alignment, bytes);
}
char* __wrap_strdup(const char* text) { return fails() ? NULL : __real_strdup(text); }
char* __wrap_strndup(const char* text, size_t most) {
  return fails() ? NULL : __real_strndup(text, most);
}

/* Whether a call succeeded; one that did not had no memory. */
#define TRY(call) is_done(call, #call)
static int is_done(int error, const char* call) {
  int class = error;
  if (error == MPI_SUCCESS) return 1;
  MPI_Error_class(error, &class);
  if (class != MPI_ERR_NO_MEM) fprintf(stderr, "%s: class %d\n", call, class);
  CHECK(class == MPI_ERR_NO_MEM && has_failed);
  return 0;
}

static void free_type(MPI_Datatype type) {
  if (type != MPI_DATATYPE_NULL) OK(MPI_Type_free(&type));
}

static void types(void) {
  const int lengths[] = {2, 1, 3}, places[] = {0, 3, 5}, sizes[] = {4, 6}, subsizes[] = {2, 3};
  const int starts[] = {1, 2}, block = MPI_DISTRIBUTE_CYCLIC, by_default = MPI_DISTRIBUTE_DFLT_DARG;
  const int one = 1, ten = 10;
  const MPI_Aint addresses[] = {0, 40, 80};
  MPI_Datatype made[9], parts[3] = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
  for (int i = 0; i < 9; ++i) made[i] = MPI_DATATYPE_NULL;
  TRY(MPI_Type_contiguous(3, MPI_INT, &made[0]));
  TRY(MPI_Type_vector(3, 2, 4, MPI_INT, &made[1]));
  TRY(MPI_Type_indexed(3, lengths, places, MPI_INT, &made[2]));
  TRY(MPI_Type_create_hindexed(3, lengths, addresses, MPI_INT, &made[3]));
  TRY(MPI_Type_create_struct(3, lengths, addresses, parts, &made[4]));
  TRY(MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &made[5]));
  TRY(MPI_Type_create_darray(1, 0, 1, &ten, &block, &by_default, &one, MPI_ORDER_C, MPI_INT,
                             &made[6]));
  if (made[4] != MPI_DATATYPE_NULL) {
    int integers[16], combiner, counts[3];
    MPI_Aint more[16];
    MPI_Datatype inner[16];
    TRY(MPI_Type_dup(made[4], &made[7]));
    TRY(MPI_Type_create_resized(made[4], 0, 200, &made[8]));
    OK(MPI_Type_get_envelope(made[4], &counts[0], &counts[1], &counts[2], &combiner));
    OK(MPI_Type_get_contents(made[4], 16, 16, 16, integers, more, inner));
    (void)TRY(MPI_Type_set_name(made[4], "a structure"));
    (void)TRY(MPI_Type_commit(&made[4]));
  }
  for (int i = 0; i < 9; ++i) free_type(made[i]);
}

static void free_comm(MPI_Comm comm) {
  if (comm != MPI_COMM_NULL) OK(MPI_Comm_free(&comm));
}
static void free_group(MPI_Group group) {
  if (group != MPI_GROUP_NULL && group != MPI_GROUP_EMPTY) OK(MPI_Group_free(&group));
}

static void communicators(void) {
  const int one = 1, none = 0;
  MPI_Comm made[6];
  MPI_Group groups[3] = {MPI_GROUP_NULL, MPI_GROUP_NULL, MPI_GROUP_NULL};
  for (int i = 0; i < 6; ++i) made[i] = MPI_COMM_NULL;
  TRY(MPI_Comm_dup(MPI_COMM_WORLD, &made[0]));
  TRY(MPI_Comm_split(MPI_COMM_WORLD, 1, 0, &made[1]));
  TRY(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made[2]));
  TRY(MPI_Cart_create(MPI_COMM_WORLD, 1, &one, &none, 0, &made[3]));
  if (TRY(MPI_Comm_group(MPI_COMM_WORLD, &groups[0]))) {
    TRY(MPI_Group_incl(groups[0], 1, &none, &groups[1]));
    TRY(MPI_Group_union(groups[0], MPI_GROUP_EMPTY, &groups[2]));
    TRY(MPI_Comm_create(MPI_COMM_WORLD, groups[0], &made[4]));
    TRY(MPI_Comm_create_group(MPI_COMM_WORLD, groups[0], 1, &made[5]));
  }
  for (int i = 0; i < 3; ++i) free_group(groups[i]);
  for (int i = 0; i < 6; ++i) free_comm(made[i]);
}

static void add(void* in, void* inout, int* length, MPI_Datatype* type) {
  CHECK(*type == MPI_INT);
  for (int i = 0; i < *length; ++i) ((int*)inout)[i] += ((int*)in)[i];
}
static void hear(MPI_Comm* comm, int* error, ...) { CHECK(*comm != MPI_COMM_NULL && *error != 0); }

static void others(void) {
  int keyval = MPI_KEYVAL_INVALID, value = 7, class = 0;
  MPI_Op op = MPI_OP_NULL;
  MPI_Info info = MPI_INFO_NULL, copy = MPI_INFO_NULL;
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  void* memory = NULL;
  if (TRY(MPI_Op_create(add, 1, &op))) OK(MPI_Op_free(&op));
  CHECK(op == MPI_OP_NULL);
  if (TRY(MPI_Info_create(&info))) {
    TRY(MPI_Info_set(info, "key", "value"));
    if (TRY(MPI_Info_dup(info, &copy))) OK(MPI_Info_free(&copy));
    OK(MPI_Info_free(&info));
  }
  CHECK(info == MPI_INFO_NULL && copy == MPI_INFO_NULL);
  if (TRY(MPI_Comm_create_errhandler(hear, &handler))) OK(MPI_Errhandler_free(&handler));
  if (TRY(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL))) {
    if (TRY(MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &value))) {
      MPI_Comm comm = MPI_COMM_NULL;
      TRY(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
      free_comm(comm);
      OK(MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval));
    }
    OK(MPI_Comm_free_keyval(&keyval));
  }
  if (TRY(MPI_Add_error_class(&class))) {
    TRY(MPI_Add_error_string(class, "an error of ours"));
    (void)MPI_Remove_error_string(class);
    OK(MPI_Remove_error_class(class));
  }
  if (TRY(MPI_Alloc_mem(100, MPI_INFO_NULL, &memory))) OK(MPI_Free_mem(memory));
}

static void messages(void) {
  static int out[3000], in[3000];
  MPI_Request receive = MPI_REQUEST_NULL, send = MPI_REQUEST_NULL, again = MPI_REQUEST_NULL;
  MPI_Status status;
  int is_cancelled = 0;
  if (TRY(MPI_Irecv(in, 3000, MPI_INT, 0, 1, MPI_COMM_WORLD, &receive))) {
    if (!TRY(MPI_Isend(out, 3000, MPI_INT, 0, 1, MPI_COMM_WORLD, &send))) OK(MPI_Cancel(&receive));
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&receive, &status));
    OK(MPI_Test_cancelled(&status, &is_cancelled));
    CHECK(!is_cancelled || has_failed);
  }
  /* One that comes before its receive is kept. */
  if (TRY(MPI_Isend(out, 10, MPI_INT, 0, 2, MPI_COMM_WORLD, &send))) {
    if (TRY(MPI_Irecv(in, 10, MPI_INT, 0, 2, MPI_COMM_WORLD, &receive))) {
      (void)TRY(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    } else {
      OK(MPI_Recv(in, 10, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
  }
  if (TRY(MPI_Send_init(out, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &again)))
    OK(MPI_Request_free(&again));
  CHECK(again == MPI_REQUEST_NULL);
}

static void collectives(void) {
  int in[8] = {0}, out[8] = {0}, count = 1, place = 0;
  MPI_Datatype type = MPI_INT;
  TRY(MPI_Allreduce(in, out, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  TRY(MPI_Reduce(in, out, 4, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD));
  TRY(MPI_Reduce_scatter(in, out, &count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  TRY(MPI_Reduce_scatter_block(in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  TRY(MPI_Scan(in, out, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  TRY(MPI_Exscan(in, out, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  TRY(MPI_Gather(in, 1, MPI_INT, out, 1, MPI_INT, 0, MPI_COMM_WORLD));
  TRY(MPI_Gatherv(in, 1, MPI_INT, out, &count, &place, MPI_INT, 0, MPI_COMM_WORLD));
  TRY(MPI_Scatter(in, 1, MPI_INT, out, 1, MPI_INT, 0, MPI_COMM_WORLD));
  TRY(MPI_Allgather(in, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_WORLD));
  TRY(MPI_Allgatherv(in, 1, MPI_INT, out, &count, &place, MPI_INT, MPI_COMM_WORLD));
  TRY(MPI_Alltoall(in, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_WORLD));
  TRY(MPI_Alltoallv(in, &count, &place, MPI_INT, out, &count, &place, MPI_INT, MPI_COMM_WORLD));
  TRY(MPI_Alltoallw(in, &count, &place, &type, out, &count, &place, &type, MPI_COMM_WORLD));
  TRY(MPI_Bcast(in, 8, MPI_INT, 0, MPI_COMM_WORLD));
  TRY(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char** argv) {
  static void (*const steps[])(void) = {types, communicators, others, messages, collectives};
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  CHECK(size == 1);
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  int failures = 0;
  for (size_t step = 0; step < sizeof steps / sizeof *steps; ++step)
    for (long n = 0, goes_on = 1; goes_on; ++n) {
      until_failure = n;
      has_failed = 0;
      steps[step]();
      until_failure = -1;
      goes_on = has_failed;
      failures += has_failed;
      CHECK(n < 10000);
    }
  OK(MPI_Finalize());
  CHECK(failures > 50);
  return 0;
}
