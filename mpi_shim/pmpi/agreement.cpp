// SPDX-License-Identifier: BSD-2-Clause
// Three steps, each a collective of the MPI underneath: whether all ranks are of one host; the team;
// whether all have it. What a rank finds for itself alone (no memory, a device that fails) is told
// to all in the last one, so that no rank takes calls that another passes on.
#include "mpi_shim/pmpi/agreement.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "mpi_shim/pmpi/handles.hpp"
#include "mpi_shim/pmpi/teller.hpp"
#include "runtime/base/log.hpp"

namespace vmpi::pmpi {
namespace {

constexpr std::int64_t kNsUntilAWord = 10'000'000'000;
/// An MPI_Status of either, which is not looked at.
struct alignas(16) AnyStatus {
  unsigned char bytes[64];
};

[[nodiscard]] std::int64_t now_ns() noexcept {
  timespec now{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// The greatest of all ranks' numbers.
[[nodiscard]] bool find_greatest(const Communicator& communicator, std::uint64_t* numbers,
                                 int count) noexcept {
  constexpr int kMost = 8;
  std::uint64_t own[kMost] = {};
  for (int i = 0; i < count; ++i) own[i] = numbers[i];
  return combine({communicator.handle, communicator.rank, communicator.size,
                  "its first collective: if others wait in one too"},
                 own, numbers, count, handle_of_max());
}

/// Of this boot of this host; 0: unknown.
[[nodiscard]] std::uint64_t find_host() noexcept {
  char text[64];
  const int file = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t length = ::read(file, text, sizeof text);
  (void)::close(file);
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (ssize_t i = 0; i < length; ++i)
    hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001b3u;
  return length > 0 ? hash : 0;
}

int exchange_with_nobody(void*, const void*, void*, std::size_t) noexcept { return EIO; }

/// Several threads may call the engine in an MPI that lets them: it is told before any does, by a
/// team of this rank alone. False: that cannot be.
[[nodiscard]] bool make_ready_for_threads() noexcept {
  constexpr int kThreadMultiple = 3;  // of both
  static constinit pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static constinit bool is_ready = false;
  int level = 0;
  if (library().call.query_thread(&level) != kSuccess) return false;
  if (level < kThreadMultiple) return true;
  (void)::pthread_mutex_lock(&lock);
  if (!is_ready) {
    vbt_coll_team_attr attr = {};
    attr.size = 1;
    attr.exchange = exchange_with_nobody;
    attr.flags = VBT_COLL_THREADS;
    vbt_coll_team* team = nullptr;
    is_ready =
        vbt_coll_create_team(&attr, sizeof attr, &team) == 0 && vbt_coll_destroy_team(team) == 0;
    if (!is_ready) verbatim::log_info("no teams for several threads: %s", vbt_coll_why());
  }
  const bool is_good = is_ready;
  (void)::pthread_mutex_unlock(&lock);
  return is_good;
}

int exchange(void* context, const void* mine, void* all, std::size_t bytes) noexcept {
  const Communicator& communicator = *static_cast<const Communicator*>(context);
  const Handle type = handle_of_byte();
  const int count = static_cast<int>(bytes);
  const int error =
      library().call.allgather(mine, count, type, all, count, type, communicator.handle);
  return error == kSuccess ? 0 : EIO;
}

/// While this rank waits for others, who may wait for it.
void be_idle(void*) noexcept { move_mpi_on(); }

}  // namespace

/// A rank that runs without this library never comes: all others would wait without a word. One of each
/// host says it.
bool combine(const Meeting& meeting, const std::uint64_t* own, std::uint64_t* all, int count,
             Handle operation) noexcept {
  const Functions& call = library().call;
  Handle request = 0;
  if (call.iallreduce(own, all, count, handle_of_uint64(), operation, meeting.communicator,
                      &request) != kSuccess)
    return false;
  const std::int64_t until = now_ns() + kNsUntilAWord;
  bool has_told = false;
  for (int is_complete = 0;;) {
    AnyStatus status;
    if (call.test(&request, &is_complete, &status) != kSuccess) return false;
    if (is_complete != 0) return true;
    (void)::sched_yield();
    if (has_told || now_ns() < until) continue;
    has_told = true;
    if (!is_mine_to_tell(Line::kWaits)) continue;
    verbatim::log_warn(
        "rank %d of a communicator of %d has waited for 10 s in %s, some have been started without "
        "libverbatim_pmpi.so; fix: give LD_PRELOAD to all ranks (on other hosts: mpirun -x "
        "LD_PRELOAD)",
        meeting.rank, meeting.size, meeting.place);
  }
}

/// MPICH moves nothing on when it is asked for messages of MPI_COMM_SELF, and neither MPI does when it
/// has the message that it is asked for: the tag is the last one that every MPI has.
void move_mpi_on() noexcept {
  const Library& mpi = library();
  constexpr int kSomeRank = 0;
  constexpr int kUnusualTag = 32767;
  AnyStatus status;
  int is_there = 0;
  (void)mpi.call.iprobe(kSomeRank, kUnusualTag, mpi.comm_world, &is_there, &status);
}

Reason make_team(Communicator& communicator) noexcept {
  const std::uint64_t host = find_host();
  enum : std::uint8_t { kHost, kNoOther, kNotReady, kNumbers };
  std::uint64_t greatest[kNumbers];
  greatest[kHost] = host;
  greatest[kNoOther] = ~host;
  greatest[kNotReady] = host == 0 || !make_ready_for_threads();
  if (!find_greatest(communicator, greatest, kNumbers)) return Reason::kNoTeam;
  if (greatest[kHost] != ~greatest[kNoOther]) return Reason::kHosts;
  if (greatest[kNotReady] != 0) return Reason::kNoTeam;

  vbt_coll_team_attr attr = {};
  attr.rank = static_cast<std::uint32_t>(communicator.rank);
  attr.size = static_cast<std::uint32_t>(communicator.size);
  attr.exchange = exchange;
  attr.idle = be_idle;
  attr.flags = VBT_COLL_LEAVE_ALONE;
  attr.context = &communicator;
  vbt_coll_team* team = nullptr;
  const int error = vbt_coll_create_team(&attr, sizeof attr, &team);
  vbt_coll_team_facts facts = {};
  std::uint64_t is_lost = 1;
  if (error != 0)
    verbatim::log_info("no team for a communicator of %d ranks: %s", communicator.size,
                       vbt_coll_why());
  else if (vbt_coll_query_team(team, &facts, sizeof facts) == 0 && facts.is_one_host != 0 &&
           facts.is_mapped != 0)
    is_lost = 0;
  if (!find_greatest(communicator, &is_lost, 1)) is_lost = 1;
  if (is_lost == 0) {
    communicator.team = team;
    return Reason::kNone;
  }
  if (error == 0) (void)vbt_coll_destroy_team(team);
  return Reason::kNoTeam;
}

}  // namespace vmpi::pmpi
