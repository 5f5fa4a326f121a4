// SPDX-License-Identifier: BSD-2-Clause
// Rank 1 ends within collectives of ranks that read each other's memory, or writes there what no
// process of this library writes, or has no memory for it; what becomes of the others is theirs to
// say.
#include <mpi.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "mpi_shim/coll/host_team.hpp"
#include "mpi_shim/core/comm.hpp"
#include "tests/mpi/check.hpp"

namespace {

constexpr int kLong = 20'000;
int rank = -1;
int size = 0;
int length = 1;
int in[kLong * 8];
int out[kLong * 8];

int barrier() { return MPI_Barrier(MPI_COMM_WORLD); }
int bcast() { return MPI_Bcast(in, length, MPI_INT, 1, MPI_COMM_WORLD); }
int bcast_to() { return MPI_Bcast(in, length, MPI_INT, 0, MPI_COMM_WORLD); }
int reduce() { return MPI_Reduce(in, out, length, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD); }
int allreduce() { return MPI_Allreduce(in, out, length, MPI_INT, MPI_SUM, MPI_COMM_WORLD); }
int allgather() { return MPI_Allgather(in, length, MPI_INT, out, length, MPI_INT, MPI_COMM_WORLD); }
int alltoall() { return MPI_Alltoall(in, length, MPI_INT, out, length, MPI_INT, MPI_COMM_WORLD); }

struct Collective {
  const char* name;
  int (*call)();
};
constexpr Collective kCollectives[] = {
    {"barrier", barrier},     {"bcast", bcast},         {"bcast_to", bcast_to}, {"reduce", reduce},
    {"allreduce", allreduce}, {"allgather", allgather}, {"alltoall", alltoall},
};

vmpi::HostTeam& team() {
  vmpi::HostTeam* const found = vmpi::find_comm(MPI_COMM_WORLD)->team;
  CHECK(found != nullptr);
  return *found;
}
/// Ours, which only we write to.
vmpi::HostBlock& block() { return const_cast<vmpi::HostBlock&>(team().block_of(team().rank())); }

void say_no_round() {
  for (auto* lines : {&block().lines, &block().up, &block().down})
    for (vmpi::HostLine& line : *lines) line.header.store(~std::uint64_t{0});
}
/// Of this round and those that follow, whichever they are.
void say(std::uint64_t what) {
  for (std::uint32_t round = 0; round < 4096; ++round)
    for (auto* lines : {&block().lines, &block().up, &block().down}) {
      vmpi::HostLine& line = (*lines)[round % vmpi::HostBlock::kLines];
      line.header.store(std::uint64_t{round} << 32 | what);
      std::memset(line.bytes, 0xff, sizeof line.bytes);
    }
}
void say_every_length() { say((1u << 29) - 1); }
void say_another_collective() { say(7u << 29); }
void say_no_such_rank_is_odd() {
  say(static_cast<std::uint64_t>(vmpi::HostKind::kOdd) << 29 | 1'000'000);
}
void say_it_left_long_ago() { block().done.store(0x7fffffffu); }
void say_it_never_left() { block().done.store(0x80000000u); }
void say_all_over() { std::memset(static_cast<void*>(&block()), 0xa5, sizeof(vmpi::HostBlock)); }

struct Lie {
  const char* name;
  void (*tell)();
};
constexpr Lie kLies[] = {{"no_round", say_no_round},
                         {"every_length", say_every_length},
                         {"another_collective", say_another_collective},
                         {"no_such_rank_is_odd", say_no_such_rank_is_odd},
                         {"left_long_ago", say_it_left_long_ago},
                         {"never_left", say_it_never_left},
                         {"all_over", say_all_over}};

void rest() {
  constexpr timespec kWhile = {0, 100'000'000};
  (void)nanosleep(&kWhile, nullptr);
}

void die_in(int microseconds) {
  (void)std::signal(SIGALRM, [](int) { (void)::raise(SIGKILL); });
  const itimerval once = {{0, 0}, {0, microseconds}};
  (void)setitimer(ITIMER_REAL, &once, nullptr);
}

/// Others go on until they are told; a collective after that is refused as well.
void until_told(int (*call)()) {
  int error = MPI_SUCCESS;
  while (error == MPI_SUCCESS) error = call();
  int error_class = 0;
  MPI_Error_class(error, &error_class);
  CHECK(error_class == MPI_ERR_PROC_ABORTED || error_class == MPI_ERR_TRUNCATE);
  do {
    error = barrier();
  } while (error == MPI_SUCCESS);
  MPI_Error_class(error, &error_class);
  CHECK(error_class == MPI_ERR_PROC_ABORTED || error_class == MPI_ERR_TRUNCATE);
}

}  // namespace

/// usage: dies COLLECTIVE LENGTH | dies_first COLLECTIVE MICROSECONDS | lies LIE COLLECTIVE | one_without
int main(int argc, char** argv) {
  CHECK(argc >= 2);
  const bool is_one_without = std::strcmp(argv[1], "one_without") == 0;
  const char* const number = std::getenv("PMI_RANK");
  if (is_one_without && number != nullptr && std::strcmp(number, "1") == 0)
    (void)::setenv("VERBATIM_COLL_HOST", "off", 1);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const bool dies_first = std::strcmp(argv[1], "dies_first") == 0;
  for (int i = 0; i < 20 && !dies_first; ++i) CHECK(barrier() == MPI_SUCCESS);
  if (is_one_without) {
    CHECK(vmpi::find_comm(MPI_COMM_WORLD)->team == nullptr);
    for (int i = 0; i < 20; ++i) CHECK(allreduce() == MPI_SUCCESS);
    MPI_Finalize();
    return 0;
  }
  if (!dies_first) (void)team();
  const bool dies = dies_first || std::strcmp(argv[1], "dies") == 0;
  CHECK(argc == 4);
  const char* const name = argv[dies ? 2 : 3];
  if (dies) length = std::atoi(argv[3]);
  int (*call)() = nullptr;
  for (const Collective& each : kCollectives)
    if (std::strcmp(name, each.name) == 0) call = each.call;
  CHECK(call != nullptr);
  if (dies_first) {
    const int after = std::exchange(length, 1);
    if (rank == 1) die_in(after);
    while (rank == 1) (void)call();
    until_told(call);
    MPI_Finalize();
    return 0;
  }
  for (int i = 0; i < 50; ++i) CHECK(call() == MPI_SUCCESS);
  // Nobody looks any more at what the others are to find right.
  for (int i = 0; i < size && rank == 1; ++i)
    if (i != 1) MPI_Recv(nullptr, 0, MPI_INT, i, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank != 1) MPI_Send(nullptr, 0, MPI_INT, 1, 7, MPI_COMM_WORLD);
  if (rank != 1) until_told(call);
  if (rank == 1) {
    for (const Lie& lie : kLies)
      if (!dies && std::strcmp(argv[2], lie.name) == 0) lie.tell();
    rest();
    (void)::raise(SIGKILL);
  }
  // Who was told leaves as it likes.
  MPI_Finalize();
  return 0;
}
