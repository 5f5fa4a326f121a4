// SPDX-License-Identifier: BSD-2-Clause
// A rank is killed, and the others make communicators with it, or have freed one that others still
// use.
#include <mpi.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/core/context_ids.hpp"
#include "mpi_shim/core/peers.hpp"
#include "tests/mpi/check.hpp"

namespace {

int rank = -1;
int size = 0;

bool is_told(int error) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(error, &error_class);
  return error_class == MPI_ERR_PROC_ABORTED;
}

void see_death_of(int dead) {
  CHECK(is_told(MPI_Recv(nullptr, 0, MPI_BYTE, dead, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE)));
}

/// Nobody leaves before all that live are here.
void meet_others(int dead) {
  const auto talk_to = [](int other) {
    CHECK(MPI_Sendrecv(nullptr, 0, MPI_BYTE, other, 8, nullptr, 0, MPI_BYTE, other, 8,
                       MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  };
  for (int i = 1; i < size && rank == 0; ++i)
    if (i != dead) talk_to(i);
  if (rank != 0) talk_to(0);
}

/// Rank 1 has freed the communicator when rank 0, which may know of no death, begins a long message
/// on it: `is_idup` makes it with a context that one process gives out.
void free_it(bool is_idup) {
  constexpr int kDead = 2;
  MPI_Comm freed = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  if (is_idup) {
    CHECK(MPI_Comm_idup(MPI_COMM_WORLD, &freed, &request) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  } else {
    CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &freed) == MPI_SUCCESS);
  }
  vmpi::Comm& kept = *vmpi::find_comm(freed);
  CHECK(MPI_Barrier(freed) == MPI_SUCCESS);
  if (rank == kDead) (void)std::raise(SIGKILL);
  std::vector<char> bytes(1 << 20);
  const int length = static_cast<int>(bytes.size());
  if (rank == 1) {
    see_death_of(kDead);
    CHECK(MPI_Comm_free(&freed) == MPI_SUCCESS);
    CHECK(MPI_Send(nullptr, 0, MPI_BYTE, 0, 5, MPI_COMM_WORLD) == MPI_SUCCESS);
  } else {
    CHECK(MPI_Recv(nullptr, 0, MPI_BYTE, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    // As of a broadcast that began before the death was known.
    CHECK(vmpi::send_to(kept, vmpi::Plane::kCollective, 1, vmpi::next_tag(kept), bytes.data(),
                        length, vmpi::byte_type()) == MPI_SUCCESS);
  }
  meet_others(kDead);
}

int make(const char* how, MPI_Comm* made) {
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  if (std::strcmp(how, "dup") == 0) return MPI_Comm_dup(MPI_COMM_WORLD, made);
  if (std::strcmp(how, "split") == 0) return MPI_Comm_split(MPI_COMM_WORLD, 0, 0, made);
  if (std::strcmp(how, "create") == 0) return MPI_Comm_create(MPI_COMM_WORLD, all, made);
  CHECK(std::strcmp(how, "create_group") == 0);
  return MPI_Comm_create_group(MPI_COMM_WORLD, all, 3, made);
}

void make_with_dead_one(const char* how) {
  constexpr int kDead = 2;
  if (rank == kDead) (void)std::raise(SIGKILL);
  MPI_Comm made = MPI_COMM_NULL;
  CHECK(is_told(make(how, &made)));
  CHECK(made == MPI_COMM_NULL);
  meet_others(kDead);
}

/// The leader of the other group, step by step: it is in the second one when the first leader,
/// which waits for that, knows of the death. In the third that one says that its group goes no
/// further.
void lead_by_hand(int other, int tag, const std::vector<int>& group) {
  vmpi::Comm& world = *vmpi::find_comm(MPI_COMM_WORLD);
  const auto swap = [&](const void* ours, std::size_t our_bytes, std::size_t their_bytes) {
    std::vector<char> theirs(their_bytes);
    const int apart = vmpi::apart_tag(tag);
    CHECK(vmpi::exchange(world, vmpi::Plane::kCollective, other, apart, ours,
                         static_cast<std::int64_t>(our_bytes), vmpi::byte_type(), other, apart,
                         theirs.data(), static_cast<std::int64_t>(their_bytes),
                         vmpi::byte_type()) == MPI_SUCCESS);
  };
  const int count = static_cast<int>(group.size());
  const std::vector<std::uint64_t> offer(vmpi::kContextWords + 1, 3);
  swap(&count, sizeof count, sizeof count);
  // What is told goes to the first leader before all that is said then.
  while (!vmpi::peer_of(1)->is_loss_told) (void)vmpi::progress();
  swap(group.data(), group.size() * sizeof(int), group.size() * sizeof(int));
  swap(offer.data(), offer.size() * sizeof offer[0], offer.size() * sizeof offer[0]);
}

/// Of two groups that join, rank 1 of the first dies before it takes part, or after one step or
/// two. The others of its group know it first, or not.
void join(int steps, bool is_known) {
  constexpr int kDead = 1;
  constexpr int kTag = 5;
  const int first = size / 2;
  MPI_Comm half = MPI_COMM_NULL;
  CHECK(MPI_Comm_split(MPI_COMM_WORLD, rank / first, 0, &half) == MPI_SUCCESS);
  CHECK(MPI_Barrier(half) == MPI_SUCCESS);
  if (rank == kDead) {
    // The number of the others, then they themselves.
    std::vector<int> heard(static_cast<std::size_t>(first));
    for (int i = 0; i < steps; ++i)
      CHECK(vmpi::bcast_bytes(*vmpi::find_comm(half), heard.data(),
                              static_cast<std::int64_t>(sizeof(int)) * (i == 0 ? 1 : first),
                              0) == MPI_SUCCESS);
    (void)std::raise(SIGKILL);
  }
  if (is_known && steps == 1 && rank >= first) {
    std::vector<int> group;
    for (int i = first; i < size; ++i) group.push_back(i);
    if (rank == first) lead_by_hand(0, kTag, group);
    meet_others(kDead);
    return;
  }
  if (is_known && steps == 0 && rank < first) see_death_of(kDead);
  MPI_Comm made = MPI_COMM_NULL;
  CHECK(is_told(
      MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < first ? first : 0, kTag, &made)));
  meet_others(kDead);
}

}  // namespace

/// usage: frees dup|idup (of 3 ranks) | makes dup|split|create|create_group (4)
///        | joins STEPS | joins_knowing 0|1 (6)
int main(int argc, char** argv) {
  CHECK(argc == 3);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
  if (std::strcmp(argv[1], "frees") == 0) free_it(std::strcmp(argv[2], "idup") == 0);
  if (std::strcmp(argv[1], "makes") == 0) make_with_dead_one(argv[2]);
  if (std::strcmp(argv[1], "joins") == 0) join(std::atoi(argv[2]), false);
  if (std::strcmp(argv[1], "joins_knowing") == 0) join(std::atoi(argv[2]), true);
  MPI_Finalize();
  return 0;
}
