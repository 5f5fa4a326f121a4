// SPDX-License-Identifier: BSD-2-Clause
// What is measured of an MPI, in C and by the standard alone, so that each implementation compiles the same source. Its
// arguments are parts; rank 0 prints a line for each figure: its name, how much of what it was taken with, median and least of
// its blocks, the unit, and in how many of the blocks other programs had a core (kernel: /proc/thread-self/schedstat).
//
//   latency     half a round trip of 8 B between ranks 0 and 1
//   small       of 64 B to 4 KiB
//   alloc, malloc  of 64 KiB to 4 MiB, in memory of MPI_Alloc_mem and of malloc
//   rate        8 B messages, 64 Isend and Irecv at a time
//   posted      half a round trip of 8 B while 10 to 10000 receives of other tags are posted before it
//   unexpected  the same while so many messages wait that nobody has asked for
//   reverse     time of a message when so many receives are met in the reverse of their order
//   idle        half a round trip of 8 B while the other ranks wait in MPI_Barrier and MPI_Recv, in blocks ten times as long
//   barrier, bcast, reduce, allreduce, allgather, alltoall  time of one, of so many bytes of each rank (for each rank, in an
//               all-to-all), of MPI_DOUBLE in reductions; root 0. Blocks begin and end with a barrier. From 4 KiB on what is
//               given is written anew before each, and a barrier comes between: the time is that of the collectives alone, of
//               the slowest rank. What is never changed would lie in the caches of who reads it
//   bcast-alloc and so on  the same in memory of MPI_Alloc_mem, of 64 KiB to 4 MiB
//   bcast-fresh and so on  the same with what is given written anew before each at every length, of 8 B to 4 MiB: neighbouring
//               lengths are comparable
//   overlap     percent of an MPI_Iallreduce of so many bytes that hides behind a computation as long as it takes by itself, an
//               MPI_Test in every 10 us of it
//   communicator  KiB more that a rank holds for each of 16 duplicates of MPI_COMM_WORLD by which collectives have gone
//   memory      KiB that a rank holds when each has talked to each: resident, and its share of what is shared (median, most)
//   nothing     MPI_Init, a barrier and MPI_Finalize
//
// "alloc:65536" measures that part with that size alone. By hand:
//   verbatim-mpicc -O2 figures.c -o figures && verbatim run -n 2 ./figures latency rate posted:1000
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  kTag = 7,
  kControlTag = 8,
  kOtherTags = 100,
  kMostBlocks = 256,
  kWindow = 64,
  kTalks = 20,  // with each rank: some have more ready for those that they hear often
  kLeastFresh = 4096,
  kMostWith = 1 << 26
};

static int rank;
static int ranks;
static double block_ns = 2e6;
static int blocks = 21;
static int keeps_disturbed = 0;
static char small_buffer[8];
static char* out_buffer = small_buffer;
static char* in_buffer = small_buffer;

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

/// How long this thread was ready and had no processor; 0 where the kernel does not tell.
static double waited_ns(void) {
  unsigned long long run = 0, waited = 0;
  FILE* const file = fopen("/proc/thread-self/schedstat", "r");
  if (file == NULL) return 0;
  if (fscanf(file, "%llu %llu", &run, &waited) != 2) waited = 0;
  fclose(file);
  return (double)waited;
}

static int compare(const void* a, const void* b) {
  const double left = *(const double*)a, right = *(const double*)b;
  return (left > right) - (left < right);
}

static void print_figure(const char* name, long with, double* values, int count, int disturbed,
                         const char* unit) {
  qsort(values, (size_t)count, sizeof *values, compare);
  printf("figure %s %ld %.3f %.3f %s %d/%d\n", name, with, values[count / 2], values[0], unit,
         disturbed, count);
  fflush(stdout);
}

/// One operation of ranks 0 and 1, `times` times.
typedef void (*Loop)(long times, int size);

static void ping_pong(long times, int size) {
  const int peer = 1 - rank;
  for (long i = 0; i < times; ++i) {
    if (rank == 0) MPI_Send(out_buffer, size, MPI_BYTE, peer, kTag, MPI_COMM_WORLD);
    MPI_Recv(in_buffer, size, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(out_buffer, size, MPI_BYTE, peer, kTag, MPI_COMM_WORLD);
  }
}

static void windows(long times, int size) {
  static MPI_Request requests[kWindow];
  for (long i = 0; i < times; ++i) {
    for (int k = 0; k < kWindow; ++k) {
      if (rank == 0)
        MPI_Isend(out_buffer + k * size, size, MPI_BYTE, 1, kTag, MPI_COMM_WORLD, &requests[k]);
      else
        MPI_Irecv(in_buffer + k * size, size, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, &requests[k]);
    }
    MPI_Waitall(kWindow, requests, MPI_STATUSES_IGNORE);
    // The receiver says when it has all of them, as in other measurements of rates.
    if (rank == 0)
      MPI_Recv(in_buffer, 0, MPI_BYTE, 1, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
      MPI_Send(out_buffer, 0, MPI_BYTE, 0, kTag, MPI_COMM_WORLD);
  }
}

/// The ranks of what is measured: all of them, or the first two.
static int is_of_all = 0;

/// Of a block of them, what the collectives alone took in this rank; negative: all of the block.
static double alone_ns = -1;

static double take_block_of_all(Loop loop, int size, long times, int* is_disturbed) {
  double mine[2] = {0, 0}, all[2] = {0, 0};
  MPI_Barrier(MPI_COMM_WORLD);
  const double waited = waited_ns();
  const double start = now_ns();
  loop(times, size);
  MPI_Barrier(MPI_COMM_WORLD);
  const double took = now_ns() - start;
  mine[0] = alone_ns >= 0 ? alone_ns : took;
  mine[1] = waited_ns() - waited;
  alone_ns = -1;
  MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  *is_disturbed = !keeps_disturbed && all[1] > took / 100;
  return rank == 0 ? all[0] : took;
}

/// At rank 0 the time of the block, and whether either rank lost more than 1 % of it to others.
static double take_block(Loop loop, int size, long times, int* is_disturbed) {
  double lost[2] = {0, 0};
  if (is_of_all) return take_block_of_all(loop, size, times, is_disturbed);
  MPI_Sendrecv(NULL, 0, MPI_BYTE, 1 - rank, kControlTag, NULL, 0, MPI_BYTE, 1 - rank, kControlTag,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  const double waited = waited_ns();
  const double start = now_ns();
  loop(times, size);
  const double took = now_ns() - start;
  lost[0] = waited_ns() - waited;
  MPI_Sendrecv(&lost[0], 1, MPI_DOUBLE, 1 - rank, kControlTag, &lost[1], 1, MPI_DOUBLE, 1 - rank,
               kControlTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  *is_disturbed = !keeps_disturbed && lost[0] + lost[1] > took / 100;
  return took;
}

static void tell_number(long* number) {
  if (is_of_all)
    MPI_Bcast(number, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  else if (rank == 0)
    MPI_Send(number, 1, MPI_LONG, 1, kControlTag, MPI_COMM_WORLD);
  else
    MPI_Recv(number, 1, MPI_LONG, 0, kControlTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/// What a communicator's first collectives set up may take as long as a block.
static void warm_up(void) {
  static int is_warm = 0;
  for (int i = 0; !is_warm && i < 200; ++i) MPI_Barrier(MPI_COMM_WORLD);
  is_warm = 1;
}

/// Blocks of one operation; a disturbed one is kept only when too few others came in twice as many.
static void measure(const char* name, long with, Loop loop, int size, double per_time,
                    const char* unit) {
  double calm[kMostBlocks], all[kMostBlocks];
  int calm_count = 0, all_count = 0, is_disturbed = 0;
  long times = 1;
  if (is_of_all) warm_up();
  for (long next = 1; next != 0;) {
    const double took = take_block(loop, size, times, &is_disturbed);
    // The first times warm up what a connection and its memory need.
    next = took < block_ns
               ? (took < block_ns / 10 ? 4 * times : (long)(1.1 * (double)times * block_ns / took))
               : 0;
    tell_number(&next);
    if (next != 0) times = next > times ? next : times + 1;
  }
  for (long more = 1; more != 0;) {
    const double took = take_block(loop, size, times, &is_disturbed);
    const double value = took / (double)times / per_time;
    all[all_count++] = value;
    if (!is_disturbed) calm[calm_count++] = value;
    more = calm_count < blocks && all_count < 2 * blocks;
    tell_number(&more);
  }
  if (rank != 0) return;
  if (2 * calm_count >= blocks)
    print_figure(name, with, calm, calm_count, 0, unit);
  else
    print_figure(name, with, all, all_count, all_count - calm_count, unit);
}

static char* checked(void* memory) {
  if (memory == NULL) {
    fprintf(stderr, "no memory for buffers\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return memory;
}

static char* make_buffer(int is_allocated, size_t bytes) {
  void* memory = NULL;
  if (is_allocated)
    MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &memory);
  else
    memory = malloc(bytes);
  memset(checked(memory), 1, bytes);
  return memory;
}

/// In buffers of so many parts.
static void measure_in_parts(const char* name, int is_allocated, int size, int count, Loop loop,
                             double per_time) {
  const size_t bytes = (size_t)size * (size_t)count;
  out_buffer = make_buffer(is_allocated, bytes);
  in_buffer = make_buffer(is_allocated, bytes);
  measure(name, size, loop, size, per_time, "ns");
  if (is_allocated) {
    MPI_Free_mem(out_buffer);
    MPI_Free_mem(in_buffer);
  } else {
    free(out_buffer);
    free(in_buffer);
  }
  out_buffer = in_buffer = small_buffer;
}

static void measure_in(const char* name, int is_allocated, int size, Loop loop, double per_time) {
  measure_in_parts(name, is_allocated, size, loop == windows ? kWindow : 1, loop, per_time);
}

/// `count` receives of other tags are posted before those of the ping-pong, or as many messages have come before its own.
static void measure_matching(const char* name, int count, int is_posted) {
  MPI_Request* const receives = (MPI_Request*)checked(malloc((size_t)count * sizeof(MPI_Request)));
  MPI_Request* const sends = (MPI_Request*)checked(malloc((size_t)count * sizeof(MPI_Request)));
  int64_t* const values = (int64_t*)checked(calloc((size_t)count, sizeof(int64_t)));
  const int64_t sent = 5;
  for (int is_receive = is_posted, round = 0; round < 2; ++round, is_receive = !is_receive) {
    for (int i = 0; i < count; ++i) {
      if (is_receive)
        MPI_Irecv(&values[i], 8, MPI_BYTE, 1 - rank, kOtherTags + i, MPI_COMM_WORLD, &receives[i]);
      else
        MPI_Isend(&sent, 8, MPI_BYTE, 1 - rank, kOtherTags + i, MPI_COMM_WORLD, &sends[i]);
    }
    if (round == 0) measure(name, count, ping_pong, 8, 2, "ns");
  }
  MPI_Waitall(count, sends, MPI_STATUSES_IGNORE);
  MPI_Waitall(count, receives, MPI_STATUSES_IGNORE);
  free(receives);
  free(sends);
  free(values);
}

static int reverse_count;
static MPI_Request* reverse_requests;
static int64_t* reverse_values;

/// Rank 1 posts receives, and rank 0 sends what the last of them wants first.
static void reverse(long times, int size) {
  for (long i = 0; i < times; ++i) {
    for (int k = 0; rank == 1 && k < reverse_count; ++k)
      MPI_Irecv(&reverse_values[k], size, MPI_BYTE, 0, kOtherTags + k, MPI_COMM_WORLD,
                &reverse_requests[k]);
    MPI_Sendrecv(NULL, 0, MPI_BYTE, 1 - rank, kTag, NULL, 0, MPI_BYTE, 1 - rank, kTag,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int k = reverse_count - 1; rank == 0 && k >= 0; --k)
      MPI_Send(out_buffer, size, MPI_BYTE, 1, kOtherTags + k, MPI_COMM_WORLD);
    if (rank == 1) MPI_Waitall(reverse_count, reverse_requests, MPI_STATUSES_IGNORE);
    MPI_Sendrecv(NULL, 0, MPI_BYTE, 1 - rank, kTag, NULL, 0, MPI_BYTE, 1 - rank, kTag,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void measure_reverse(int count) {
  reverse_count = count;
  reverse_requests = (MPI_Request*)checked(malloc((size_t)count * sizeof(MPI_Request)));
  reverse_values = (int64_t*)checked(calloc((size_t)count, sizeof(int64_t)));
  measure("reverse", count, reverse, 8, count, "ns");
  free(reverse_requests);
  free(reverse_values);
}

struct Collective {
  const char* name;
  void (*function)(int size);
  int gives_to_each;
};

/// MPI_FLOAT where no MPI_DOUBLE fits.
static MPI_Datatype type_of(int size) {
  return size < (int)sizeof(double) ? MPI_FLOAT : MPI_DOUBLE;
}
static int count_of(int size) {
  return size < (int)sizeof(double) ? size / (int)sizeof(float) : size / (int)sizeof(double);
}

static void barriers(int size) {
  (void)size;
  MPI_Barrier(MPI_COMM_WORLD);
}
static void bcasts(int size) { MPI_Bcast(out_buffer, size, MPI_BYTE, 0, MPI_COMM_WORLD); }
static void reduces(int size) {
  MPI_Reduce(out_buffer, in_buffer, count_of(size), type_of(size), MPI_SUM, 0, MPI_COMM_WORLD);
}
static void allreduces(int size) {
  MPI_Allreduce(out_buffer, in_buffer, count_of(size), type_of(size), MPI_SUM, MPI_COMM_WORLD);
}
static void allgathers(int size) {
  MPI_Allgather(out_buffer, size, MPI_BYTE, in_buffer, size, MPI_BYTE, MPI_COMM_WORLD);
}
static void alltoalls(int size) {
  MPI_Alltoall(out_buffer, size, MPI_BYTE, in_buffer, size, MPI_BYTE, MPI_COMM_WORLD);
}

static void (*collective)(int size);
static size_t given_bytes;

static void collectives_in_a_row(long times, int size) {
  for (long i = 0; i < times; ++i) collective(size);
}
static void fresh_collectives(long times, int size) {
  alone_ns = 0;
  for (long i = 0; i < times; ++i) {
    memset(out_buffer, (int)(i & 0x3f), given_bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now_ns();
    collective(size);
    alone_ns += now_ns() - start;
  }
}

static const struct Collective collectives[] = {
    {"barrier", barriers, 0},     {"bcast", bcasts, 0},         {"reduce", reduces, 0},
    {"allreduce", allreduces, 0}, {"allgather", allgathers, 0}, {"alltoall", alltoalls, 1},
};

/// "allreduce", "allreduce-alloc" or "allreduce-fresh". False: it is no collective.
static int measure_collective(const char* name, int size) {
  const size_t length = strcspn(name, "-");
  for (size_t i = 0; i < sizeof collectives / sizeof collectives[0]; ++i) {
    const struct Collective* const one = &collectives[i];
    if (strlen(one->name) != length || strncmp(one->name, name, length) != 0) continue;
    is_of_all = 1;
    keeps_disturbed = ranks > 2;  // who shares a core has it taken away
    collective = one->function;
    given_bytes = (size_t)size * (size_t)(one->gives_to_each ? ranks : 1);
    // Room for what all ranks give.
    const int is_fresh = size >= kLeastFresh || strcmp(name + length, "-fresh") == 0;
    measure_in_parts(name, strcmp(name + length, "-alloc") == 0, size, ranks,
                     is_fresh ? fresh_collectives : collectives_in_a_row, 1);
    keeps_disturbed = is_of_all = 0;
    return 1;
  }
  return 0;
}

static double work_value = 1;

/// So many units of a computation: a fixed amount of work, which whatever takes the processor makes longer.
static void compute(long units) {
  double value = work_value;
  for (long i = 0; i < units; ++i) value = value * 0.999999 + 1e-6;
  work_value = value;
}

static double units_of_ns(void) {
  enum { kUnits = 100000, kTimes = 9 };
  double best = 0;
  for (int i = 0; i < kTimes; ++i) {
    const double start = now_ns();
    compute(kUnits);
    const double rate = kUnits / (now_ns() - start + 1);
    if (rate > best) best = rate;
  }
  return best;
}

/// One by itself, with no test; or beside so many units, with a test in each `between`. What it took.
static double iallreduce_beside(int size, long units, long between) {
  MPI_Request request;
  int is_complete = 0;
  memset(out_buffer, 1, (size_t)size);
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = now_ns();
  MPI_Iallreduce(out_buffer, in_buffer, count_of(size), type_of(size), MPI_SUM, MPI_COMM_WORLD,
                 &request);
  for (long done = 0; done < units; done += between) {
    compute(between < units - done ? between : units - done);
    MPI_Test(&request, &is_complete, MPI_STATUS_IGNORE);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return now_ns() - start;
}

static double median_of(double* values, int count) {
  qsort(values, (size_t)count, sizeof *values, compare);
  return values[count / 2];
}

/// As the Intel MPI benchmarks have it: what both take less at once than one after the other, of the shorter one; by medians
/// of three times that are taken in turn, and the mean of ranks.
static void measure_overlap(int size) {
  enum { kEach = 25, kWarmUp = 10 };
  double calm[kMostBlocks], alone[kEach], computed[kEach], both[kEach];
  const double rate = units_of_ns();
  out_buffer = make_buffer(0, (size_t)size);
  in_buffer = make_buffer(0, (size_t)size);
  for (int i = 0; i < kWarmUp; ++i) alone[i] = iallreduce_beside(size, 0, 1);
  double mine = median_of(alone, kWarmUp), longest = 0;
  MPI_Allreduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  const long units = (long)(longest * rate) + 1, between = (long)(1e4 * rate) + 1;
  for (int block = 0; block < blocks; ++block) {
    for (int i = 0; i < kEach; ++i) {
      alone[i] = iallreduce_beside(size, 0, 1);
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = now_ns();
      compute(units);
      computed[i] = now_ns() - start;
      both[i] = iallreduce_beside(size, units, between);
    }
    const double a = median_of(alone, kEach), c = median_of(computed, kEach);
    double hidden = 100 * (a + c - median_of(both, kEach)) / (a < c ? a : c), sum = 0;
    if (hidden < 0) hidden = 0;
    if (hidden > 100) hidden = 100;
    MPI_Reduce(&hidden, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    // A figure of nothing would not be told from none.
    calm[block] = sum / ranks > 0.001 ? sum / ranks : 0.001;
  }
  free(out_buffer);
  free(in_buffer);
  out_buffer = in_buffer = small_buffer;
  if (rank == 0) print_figure("overlap", size, calm, blocks, 0, "%");
}

static void measure_beside_idle_ranks(int size) {
  const double standing_ns = block_ns;
  // Of many turns at the processors, whoever has them: to lose them is what is measured.
  block_ns *= 10;
  keeps_disturbed = 1;
  if (rank <= 1) measure_in("idle", 0, size, ping_pong, 2);
  block_ns = standing_ns;
  keeps_disturbed = 0;
  // Those of odd numbers wait in a receive meanwhile, the others in the barrier.
  if (rank == 0)
    for (int other = 3; other < ranks; other += 2)
      MPI_Send(out_buffer, 8, MPI_BYTE, other, kTag, MPI_COMM_WORLD);
  if (rank > 1 && rank % 2 == 1)
    MPI_Recv(in_buffer, 8, MPI_BYTE, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
}

/// KiB of the line of /proc/self/smaps_rollup that begins so.
static double kib_of(const char* name) {
  char line[256];
  double kib = 0;
  FILE* const file = fopen("/proc/self/smaps_rollup", "r");
  if (file == NULL) return 0;
  while (fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, name, strlen(name)) == 0) kib = strtod(line + strlen(name), NULL);
  fclose(file);
  return kib;
}

static void print_memory(const char* name, double mine) {
  double* const all = (double*)checked(malloc((size_t)ranks * sizeof(double)));
  MPI_Gather(&mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    qsort(all, (size_t)ranks, sizeof *all, compare);
    printf("figure %s %d %.0f %.0f KiB 0/1\n", name, ranks, all[ranks / 2], all[ranks - 1]);
    fflush(stdout);
  }
  free(all);
}

static void measure_memory(void) {
  MPI_Request* const requests =
      (MPI_Request*)checked(malloc(2 * (size_t)ranks * sizeof(MPI_Request)));
  double* const values = (double*)checked(malloc(2 * (size_t)ranks * sizeof(double)));
  for (int round = 0; round < kTalks; ++round) {
    for (int peer = 0; peer < ranks; ++peer) {
      values[peer] = rank;
      MPI_Irecv(&values[ranks + peer], 1, MPI_DOUBLE, peer, kTag, MPI_COMM_WORLD,
                &requests[2 * peer]);
      MPI_Isend(&values[peer], 1, MPI_DOUBLE, peer, kTag, MPI_COMM_WORLD, &requests[2 * peer + 1]);
    }
    MPI_Waitall(2 * ranks, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Alltoall(values, 1, MPI_DOUBLE, values + ranks, 1, MPI_DOUBLE, MPI_COMM_WORLD);
  free(requests);
  free(values);
  MPI_Barrier(MPI_COMM_WORLD);
  // All look before anyone goes on: what is shared counts by how many share it.
  const double resident = kib_of("Rss:"), share = kib_of("Pss:");
  MPI_Barrier(MPI_COMM_WORLD);
  print_memory("resident", resident);
  print_memory("share", share);
}

/// By it go as many collectives of each kind as some libraries wait for before they give it memory.
static MPI_Comm make_communicator(void) {
  double value = 1, sum = 0;
  MPI_Comm made;
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  for (int i = 0; i < kTalks; ++i) {
    MPI_Barrier(made);
    MPI_Bcast(&value, 1, MPI_DOUBLE, 0, made);
    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_MAX, made);
  }
  MPI_Barrier(made);
  return made;
}

static void measure_communicators(int count) {
  MPI_Comm* const comms = (MPI_Comm*)checked(malloc((size_t)count * sizeof(MPI_Comm)));
  // What the first one takes for all that come after it is none of theirs.
  MPI_Comm first = make_communicator();
  const double before = kib_of("Pss:");
  MPI_Barrier(MPI_COMM_WORLD);
  for (int c = 0; c < count; ++c) comms[c] = make_communicator();
  const double after = kib_of("Pss:");
  MPI_Barrier(MPI_COMM_WORLD);
  for (int c = 0; c < count; ++c) MPI_Comm_free(&comms[c]);
  MPI_Comm_free(&first);
  free(comms);
  const double each = (after - before) / count;
  print_memory("communicator", each > 0.5 ? each : 0.5);
}

#define kAllLengths                                                                              \
  {                                                                                              \
    8, 16, 32, 64, 128, 256, 512, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16, \
        1 << 17, 1 << 18, 1 << 19, 1 << 20, 1 << 21, 1 << 22                                     \
  }

/// What parts are taken with when nothing is said.
static const struct Part {
  const char* name;
  int with[21];  // up to a 0
  int ranks;     // that it needs
} parts[] = {
    {"latency", {8}, 2},
    {"small", {64, 256, 1024, 4096}, 2},
    {"alloc", {1 << 16, 1 << 18, 1 << 20, 1 << 22}, 2},
    {"malloc", {1 << 16, 1 << 18, 1 << 20, 1 << 22}, 2},
    {"rate", {8}, 2},
    {"posted", {10, 100, 1000, 10000}, 2},
    {"unexpected", {10, 100, 1000, 10000}, 2},
    {"reverse", {10, 100, 1000, 10000}, 2},
    {"idle", {8}, 2},
    {"barrier", {8}, 2},
    {"bcast", {8, 64, 512, 4096, 1 << 16, 1 << 20}, 2},
    {"reduce", {8, 64, 512, 4096, 1 << 16, 1 << 20}, 2},
    {"allreduce", {8, 64, 512, 4096, 1 << 16, 1 << 20}, 2},
    {"allgather", {8, 64, 512, 4096, 1 << 16, 1 << 20}, 2},
    {"alltoall", {8, 64, 512, 4096, 1 << 16, 1 << 20}, 2},
    {"bcast-alloc", {1 << 16, 1 << 18, 1 << 20, 1 << 22}, 2},
    {"reduce-alloc", {1 << 16, 1 << 18, 1 << 20, 1 << 22}, 2},
    {"allreduce-alloc", {1 << 16, 1 << 18, 1 << 20, 1 << 22}, 2},
    {"allgather-alloc", {1 << 16, 1 << 18, 1 << 20, 1 << 22}, 2},
    {"alltoall-alloc", {1 << 16, 1 << 18, 1 << 20, 1 << 22}, 2},
    {"bcast-fresh", kAllLengths, 2},
    {"reduce-fresh", kAllLengths, 2},
    {"allreduce-fresh", kAllLengths, 2},
    {"allgather-fresh", kAllLengths, 2},
    {"alltoall-fresh", kAllLengths, 2},
    {"overlap", {1 << 20}, 2},
    {"communicator", {16}, 1},
    {"memory", {1}, 1},
    {"nothing", {1}, 1},
};

static void measure_part(const char* name, int with) {
  if (strcmp(name, "memory") == 0) {
    measure_memory();
  } else if (strcmp(name, "communicator") == 0) {
    measure_communicators(with);
  } else if (strcmp(name, "overlap") == 0) {
    measure_overlap(with);
  } else if (strcmp(name, "nothing") == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (strcmp(name, "idle") == 0) {
    measure_beside_idle_ranks(with);
  } else if (measure_collective(name, with) || rank > 1) {
    return;
  } else if (strcmp(name, "rate") == 0) {
    measure_in(name, 0, with, windows, kWindow);
  } else if (strcmp(name, "posted") == 0 || strcmp(name, "unexpected") == 0) {
    measure_matching(name, with, strcmp(name, "posted") == 0);
  } else if (strcmp(name, "reverse") == 0) {
    measure_reverse(with);
  } else {
    measure_in(name, strcmp(name, "alloc") == 0, with, ping_pong, 2);
  }
}

/// "name" or "name:with". False: it is none, or not of so few ranks.
static int take_argument(const char* argument) {
  const size_t length = strcspn(argument, ":");
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; ++i) {
    const struct Part* const part = &parts[i];
    if (strlen(part->name) != length || strncmp(part->name, argument, length) != 0) continue;
    if (ranks < part->ranks) return 0;
    if (argument[length] == ':') {
      const long with = strtol(argument + length + 1, NULL, 10);
      if (with < 1 || with > kMostWith) return 0;
      measure_part(part->name, (int)with);
    } else {
      for (const int* with = part->with; *with != 0; ++with) measure_part(part->name, *with);
    }
    return 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  int status = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 1; i < argc && status == 0; ++i) {
    if (strcmp(argv[i], "--block-us") == 0 && i + 1 < argc) {
      block_ns = 1000 * strtod(argv[++i], NULL);
    } else if (strcmp(argv[i], "--blocks") == 0 && i + 1 < argc) {
      blocks = atoi(argv[++i]);
      if (blocks < 1 || 2 * blocks > kMostBlocks) blocks = 1;
    } else if (!take_argument(argv[i])) {
      if (rank == 0)
        fprintf(stderr, "figures: '%s' is no part that %d ranks can measure\n", argv[i], ranks);
      status = 2;
    }
  }
  MPI_Finalize();
  return status;
}
