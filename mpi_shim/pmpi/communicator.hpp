// SPDX-License-Identifier: BSD-2-Clause
// What is known of a communicator of the program's: an attribute of it, so that it goes when the
// communicator does. Whether it has a team of ours is decided once, by all its ranks alike, in the
// first call that would be taken.
//
// Calls on one communicator come one by one, as MPI has it; those on different ones in any threads.
#pragma once

#include <verbatim/coll.h>

#include <atomic>
#include <cstdint>

#include "mpi_shim/pmpi/library.hpp"
#include "mpi_shim/pmpi/tally.hpp"

namespace vmpi::pmpi {

struct Communicator {
  Handle handle;
  int rank;
  int size;
  bool is_decided;
  /// While there is no team.
  Reason why_not;
  vbt_coll_team* team;
  std::uint32_t taken;  ///< calls, since the MPI was moved on
  Tally tally;
  Communicator* next;  ///< of those that there are, or of those that have gone
  Communicator** at;   ///< what points at it
};

/// Counts the communicators that have gone: what threads remember of before is void.
extern std::atomic<std::uint32_t> gone_communicators;

/// What a thread remembers of communicators that it has used lately.
struct RememberedCommunicator {
  Handle handle;
  std::uint32_t gone;
  Communicator* communicator;
};
inline constexpr std::size_t kRemembered = 8;
[[gnu::tls_model(
    "initial-exec")]] extern thread_local constinit RememberedCommunicator remembered[kRemembered];

[[nodiscard, gnu::cold, gnu::noinline]] Communicator* look_up(Handle handle) noexcept;

/// Null: it is the MPI's own affair, and not counted (no communicator, MPI is not there yet or not
/// any more, or it is an MPI that is not known here).
[[nodiscard]] inline Communicator* find_communicator(Handle passed) noexcept {
  const Handle handle = handle_of(passed);
  const RememberedCommunicator& known = remembered[(handle ^ handle >> 9) % kRemembered];
  if (known.handle == handle && known.communicator != nullptr &&
      known.gone == gone_communicators.load(std::memory_order_acquire)) [[likely]]
    return known.communicator;
  return look_up(handle);
}

[[gnu::cold, gnu::noinline]] void decide(Communicator& communicator) noexcept;

/// Whether calls are taken. To be asked of calls that would be, and by all ranks alike.
[[nodiscard]] inline bool has_team(Communicator& communicator) noexcept {
  if (!communicator.is_decided) [[unlikely]]
    decide(communicator);
  return communicator.team != nullptr;
}

/// At the end of one of many calls: the MPI moves on, and teams of what has gone end.
[[gnu::cold, gnu::noinline]] void do_other_work() noexcept;

/// MPI_Finalize: with all ranks of the job, before the MPI itself ends. Tells the table.
void end_communicators() noexcept;

/// A word to the communicator's error handler, whose answer it is; it may not return.
[[nodiscard, gnu::cold]] int raise(const Communicator& communicator, Collective collective,
                                   int error_class, const char* why) noexcept;

/// What the program gets for what the engine has answered.
[[nodiscard, gnu::cold, gnu::noinline]] int judge(Communicator& communicator, Collective collective,
                                                  int error) noexcept;

}  // namespace vmpi::pmpi
