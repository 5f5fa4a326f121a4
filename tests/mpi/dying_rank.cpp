// SPDX-License-Identifier: BSD-2-Clause
// A rank is killed while the others are in a collective that goes by messages, or have started one of
// each kind: each of these ends with an error at every rank that lives, of which communicators without
// the dead one do not hear.
#include <mpi.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/mpi/check.hpp"

namespace {

int rank = -1;
int size = 0;
int length = 1;
MPI_Comm comm = MPI_COMM_NULL;  ///< of all ranks, a ring

std::vector<int> in;
std::vector<int> counts;
std::vector<int> places;
std::vector<int> bytes;
std::vector<MPI_Datatype> types;
int* out = nullptr;

struct Kind {
  const char* name;
  int (*call)();
  int (*start)(MPI_Request*);
};

#define KIND(name, Name, ...)                                        \
  {                                                                  \
#name, [] { return MPI_##Name(__VA_ARGS__ __VA_OPT__(, ) comm); }, \
        [](MPI_Request* request) { return MPI_I##name(__VA_ARGS__ __VA_OPT__(, ) comm, request); } \
  }

const Kind kKinds[] = {
    KIND(barrier, Barrier),
    KIND(bcast, Bcast, out, length, MPI_INT, 0),
    KIND(gather, Gather, in.data(), length, MPI_INT, out, length, MPI_INT, 0),
    KIND(gatherv, Gatherv, in.data(), length, MPI_INT, out, counts.data(), places.data(), MPI_INT,
         0),
    KIND(scatter, Scatter, in.data(), length, MPI_INT, out, length, MPI_INT, 0),
    KIND(scatterv, Scatterv, in.data(), counts.data(), places.data(), MPI_INT, out, length, MPI_INT,
         0),
    KIND(allgather, Allgather, in.data(), length, MPI_INT, out, length, MPI_INT),
    KIND(allgatherv, Allgatherv, in.data(), length, MPI_INT, out, counts.data(), places.data(),
         MPI_INT),
    KIND(alltoall, Alltoall, in.data(), length, MPI_INT, out, length, MPI_INT),
    KIND(alltoallv, Alltoallv, in.data(), counts.data(), places.data(), MPI_INT, out, counts.data(),
         places.data(), MPI_INT),
    KIND(alltoallw, Alltoallw, in.data(), counts.data(), bytes.data(), types.data(), out,
         counts.data(), bytes.data(), types.data()),
    KIND(reduce, Reduce, in.data(), out, length, MPI_INT, MPI_SUM, 0),
    KIND(allreduce, Allreduce, in.data(), out, length, MPI_INT, MPI_SUM),
    KIND(reduce_scatter, Reduce_scatter, in.data(), out, counts.data(), MPI_INT, MPI_SUM),
    KIND(reduce_scatter_block, Reduce_scatter_block, in.data(), out, length, MPI_INT, MPI_SUM),
    KIND(scan, Scan, in.data(), out, length, MPI_INT, MPI_SUM),
    KIND(exscan, Exscan, in.data(), out, length, MPI_INT, MPI_SUM),
    KIND(neighbor_allgather, Neighbor_allgather, in.data(), length, MPI_INT, out, length, MPI_INT),
    KIND(neighbor_alltoall, Neighbor_alltoall, in.data(), length, MPI_INT, out, length, MPI_INT),
};
constexpr std::size_t kCount = sizeof kKinds / sizeof kKinds[0];

bool is_told(int error) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(error, &error_class);
  return error_class == MPI_ERR_PROC_ABORTED;
}

/// Who only sends may see nothing of it at first.
void until_told(int (*call)()) {
  int error = MPI_SUCCESS;
  while (error == MPI_SUCCESS) error = call();
  CHECK(is_told(error));
  CHECK(is_told(MPI_Barrier(comm)));
}

void start_all() {
  const std::size_t room = in.size();
  std::vector<int> all(2 * kCount * room);
  std::vector<MPI_Request> requests(2 * kCount, MPI_REQUEST_NULL);
  for (std::size_t i = 0; i < kCount; ++i) {
    out = all.data() + i * room;
    CHECK(kKinds[i].start(&requests[i]) == MPI_SUCCESS);
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    const int error = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    CHECK(error == MPI_SUCCESS || is_told(error));
    if (i == 0) CHECK(is_told(error));
  }
  for (std::size_t i = kCount; i < 2 * kCount; ++i) {
    out = all.data() + i * room;
    CHECK(kKinds[i - kCount].start(&requests[i]) == MPI_SUCCESS);
    CHECK(is_told(MPI_Wait(&requests[i], MPI_STATUS_IGNORE)));
  }
}

/// Others may still be in the collectives that this rank has done: only what is called later must hear of
/// its end.
void die_behind_all() {
  for (int i = 1; i < size; ++i)
    CHECK(MPI_Recv(nullptr, 0, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE) ==
          MPI_SUCCESS);
  (void)::raise(SIGKILL);
}

void go_on(MPI_Comm living) {
  const int one = 1;
  int sum = 0;
  for (int i = 0; i < 20; ++i) {
    CHECK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, living) == MPI_SUCCESS);
    CHECK(sum == size - 1);
  }
  // Nobody leaves before all are here.
  int here = -1;
  MPI_Comm_rank(living, &here);
  for (int i = 1; i < size - 1 && here == 0; ++i)
    CHECK(MPI_Recv(nullptr, 0, MPI_INT, i, 1, living, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  for (int i = 1; i < size - 1 && here == 0; ++i)
    CHECK(MPI_Send(nullptr, 0, MPI_INT, i, 2, living) == MPI_SUCCESS);
  if (here != 0)
    CHECK(MPI_Sendrecv(nullptr, 0, MPI_INT, 0, 1, nullptr, 0, MPI_INT, 0, 2, living,
                       MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

/// The first has done its part of two collectives when it calls MPI_Finalize, in which nobody waits
/// for others any more. The last does its own when it knows that the first is gone, and waits in
/// the second for those between, which live and take some looks at who does.
void hear_of_one_that_left(MPI_Comm living) {
  constexpr timespec kLooks = {0, 400'000'000};
  int here = -1;
  int count = -1;
  MPI_Comm_rank(living, &here);
  MPI_Comm_size(living, &count);
  const int last = count - 1;
  // By the memory of the host where it is to be.
  for (int i = 0; i < 10; ++i) CHECK(MPI_Barrier(living) == MPI_SUCCESS);
  int told = here == 0 ? 17 : 0;
  if (here == last) {
    CHECK(is_told(MPI_Probe(0, 3, living, MPI_STATUS_IGNORE)));
    for (int i = 1; i < last; ++i)
      CHECK(MPI_Send(nullptr, 0, MPI_INT, i, 4, living) == MPI_SUCCESS);
  }
  CHECK(MPI_Bcast(&told, 1, MPI_INT, 0, living) == MPI_SUCCESS);
  CHECK(told == 17);
  if (here != 0 && here != last) {
    CHECK(MPI_Recv(nullptr, 0, MPI_INT, last, 4, living, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(::nanosleep(&kLooks, nullptr) == 0);
  }
  int sum = 0;
  CHECK(MPI_Reduce(&told, &sum, 1, MPI_INT, MPI_SUM, last, living) == MPI_SUCCESS);
  CHECK(here != last || sum == 17 * count);
}

}  // namespace

/// usage: COLLECTIVE|all|fatal|leaves LENGTH DEAD | differs LENGTH RANK: whose length is another
int main(int argc, char** argv) {
  CHECK(argc == 4);
  length = std::atoi(argv[2]);
  const int dead = std::atoi(argv[3]);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const bool is_fatal = std::strcmp(argv[1], "fatal") == 0;
  const bool is_leaving = std::strcmp(argv[1], "leaves") == 0;
  const bool is_odd = std::strcmp(argv[1], "differs") == 0;
  if (!is_fatal && !is_odd) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int is_periodic = 1;
  CHECK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &is_periodic, 0, &comm) == MPI_SUCCESS);
  MPI_Comm living = MPI_COMM_NULL;
  CHECK(MPI_Comm_split(MPI_COMM_WORLD, rank == dead ? MPI_UNDEFINED : 0, 0, &living) ==
        MPI_SUCCESS);

  in.assign(static_cast<std::size_t>(size) * (length + 1), 1);
  std::vector<int> own(in.size());
  out = own.data();
  counts.assign(size, length);
  types.assign(size, MPI_INT);
  for (int i = 0; i < size; ++i) {
    places.push_back(i * length);
    bytes.push_back(i * length * static_cast<int>(sizeof(int)));
  }

  int (*call)() = nullptr;
  for (const Kind& each : kKinds) {
    if (std::strcmp(argv[1], each.name) == 0) call = each.call;
    if ((is_fatal || is_leaving || is_odd) && std::strcmp("allreduce", each.name) == 0)
      call = each.call;
    CHECK(each.call() == MPI_SUCCESS);
  }
  CHECK(call != nullptr || std::strcmp(argv[1], "all") == 0);
  if (is_odd) {
    // Often enough for a team of the host. It ends all ranks.
    for (int i = 0; i < 20; ++i) (void)call();
    if (rank == dead) ++length;
    (void)call();
    return 0;
  }
  if (rank == dead) die_behind_all();
  CHECK(MPI_Send(nullptr, 0, MPI_INT, dead, 5, MPI_COMM_WORLD) == MPI_SUCCESS);
  if (call != nullptr)
    until_told(call);
  else
    start_all();

  if (is_leaving)
    hear_of_one_that_left(living);
  else
    go_on(living);
  MPI_Finalize();
  return 0;
}
