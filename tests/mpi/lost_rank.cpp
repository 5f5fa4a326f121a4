// SPDX-License-Identifier: BSD-2-Clause
// Rank 1 lives, and rank 0 has lost it: collectives with it are over at all ranks, those too that
// hear of it late, and at rank 1 itself.
#include <mpi.h>
#include <signal.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mpi_shim/core/engine.hpp"
#include "mpi_shim/core/peers.hpp"
#include "tests/mpi/check.hpp"

namespace {

int rank = -1;

void send_to(int to) {
  CHECK(MPI_Send(nullptr, 0, MPI_BYTE, to, 7, MPI_COMM_WORLD) == MPI_SUCCESS);
}
void hear_from(int from) {
  CHECK(MPI_Recv(nullptr, 0, MPI_BYTE, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

/// This rank alone, which then tells all that it may send to.
void lose(std::uint32_t other) {
  vmpi::Peer& lost = *vmpi::peer_of(other);
  vmpi::fail_peer(lost, "the test says so");
  while (!lost.is_loss_told) (void)vmpi::progress();
}

/// Rank 2 waits for a signal before it says the first word to anybody: what rank 0 told then it
/// could not hear.
void tell_late() {
  sigset_t word;
  ::sigemptyset(&word);
  ::sigaddset(&word, SIGUSR1);
  if (rank == 0) {
    lose(1);
    vmpi::Peer& late = *vmpi::peer_of(2);
    CHECK(!late.is_ready && vmpi::learn_address(late));
    CHECK(::kill(late.address.process, SIGUSR1) == 0);
  }
  int heard = 0;
  if (rank == 2) CHECK(::sigwait(&word, &heard) == 0);
  if (rank == 1) {
    hear_from(2);
    return;
  }
  CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_ERR_PROC_ABORTED);
  // Nobody leaves before all have heard.
  if (rank == 0) hear_from(2);
  for (int to = 0; to < 2 && rank == 2; ++to) send_to(to);
}

MPI_Comm of_ranks(int first, int second) {
  MPI_Comm made = MPI_COMM_NULL;
  const bool is_in = rank == first || rank == second;
  CHECK(MPI_Comm_split(MPI_COMM_WORLD, is_in ? 0 : MPI_UNDEFINED, 0, &made) == MPI_SUCCESS);
  return made;
}

/// Rank 1 hears it of rank 2, and counts on neither of the two. They count on each other.
void tell_itself() {
  const MPI_Comm of_0_and_1 = of_ranks(0, 1);
  const MPI_Comm of_1_and_2 = of_ranks(1, 2);
  const MPI_Comm of_0_and_2 = of_ranks(0, 2);
  if (rank == 0) lose(1);
  // Nobody sends rank 0 anything, by which its end of the link would be seen.
  int said = 0;
  CHECK(MPI_Bcast(&said, 1, MPI_INT, 0, MPI_COMM_WORLD) == MPI_ERR_PROC_ABORTED);
  if (rank != 2) CHECK(MPI_Barrier(of_0_and_1) == MPI_ERR_PROC_ABORTED);
  if (rank != 0) CHECK(MPI_Barrier(of_1_and_2) == MPI_ERR_PROC_ABORTED);
  // Rank 1 sees the end of that link, too, which is no loss of rank 0 to the others.
  if (rank == 1) {
    lose(0);
    send_to(2);
  }
  if (rank == 2) hear_from(1);
  if (rank != 1) CHECK(MPI_Barrier(of_0_and_2) == MPI_SUCCESS);
}

void hear_of_root(MPI_Comm comm, int said, int times) {
  for (int i = 0; i < times; ++i) {
    int heard = rank == 0 ? said : 0;
    CHECK(MPI_Bcast(&heard, 1, MPI_INT, 0, comm) == MPI_SUCCESS);
    CHECK(heard == said);
  }
}

/// Rank 1 reads on in the block of a team that all others have left: nothing of the next team's.
void read_what_was_left() {
  constexpr int kRoundsTill = 12;  // of the old team, which is made with the ninth collective
  constexpr int kRoundsThen = 23;  // of the next one, which is: lines of 16 rounds are kept
  constexpr int kBefore = 8;
  MPI_Comm all = MPI_COMM_NULL;
  CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &all) == MPI_SUCCESS);
  hear_of_root(all, 7, kBefore + kRoundsTill);
  CHECK(MPI_Barrier(all) == MPI_SUCCESS);
  if (rank == 1) {
    hear_from(2);
    int heard = 0;
    CHECK(MPI_Bcast(&heard, 1, MPI_INT, 0, all) == MPI_ERR_PROC_ABORTED);
    send_to(2);
    return;
  }
  if (rank == 0) lose(1);
  MPI_Comm_free(&all);
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Group others = MPI_GROUP_NULL;
  MPI_Comm living = MPI_COMM_NULL;
  const int lost = 1;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_excl(world, 1, &lost, &others);
  CHECK(MPI_Comm_create_group(MPI_COMM_WORLD, others, 3, &living) == MPI_SUCCESS);
  // All have left the old team when rank 0 looks for a block.
  hear_of_root(living, 99, 1);
  CHECK(MPI_Barrier(living) == MPI_SUCCESS);
  hear_of_root(living, 99, kBefore - 2 + kRoundsThen);
  if (rank == 2) {
    send_to(1);
    hear_from(1);
  }
  CHECK(MPI_Barrier(living) == MPI_SUCCESS);
}

}  // namespace

/// usage: late|itself (of 3 ranks)|block (of 4)
int main(int argc, char** argv) {
  CHECK(argc == 2);
  const bool is_late = std::strcmp(argv[1], "late") == 0;
  sigset_t word;
  ::sigemptyset(&word);
  ::sigaddset(&word, SIGUSR1);
  CHECK(::pthread_sigmask(SIG_BLOCK, &word, nullptr) == 0);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  // Rank 1 is connected to both, or to rank 0 alone.
  if (!is_late)
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
  else if (rank < 2)
    CHECK(MPI_Sendrecv(nullptr, 0, MPI_BYTE, 1 - rank, 1, nullptr, 0, MPI_BYTE, 1 - rank, 1,
                       MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  if (is_late) tell_late();
  if (std::strcmp(argv[1], "itself") == 0) tell_itself();
  if (std::strcmp(argv[1], "block") == 0) read_what_was_left();
  MPI_Finalize();
  return 0;
}
