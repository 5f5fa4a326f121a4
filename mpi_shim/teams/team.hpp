// SPDX-License-Identifier: BSD-2-Clause
// Teams of verbatim/coll.h: each is a communicator of the engine, whose world grows with them. There
// is no launcher: what members must know of each other travels by the program's exchange.
//
// All but the C functions is called with the big lock held, which those take.
#pragma once

#include <verbatim/coll.h>

#include <cstdint>

#include "mpi_shim/core/comm.hpp"

namespace vmpi {
inline constexpr std::uint64_t kTeamMagic = 0x6d61655474627600u;
}  // namespace vmpi

struct vbt_coll_team {
  std::uint64_t magic = vmpi::kTeamMagic;
  vmpi::Comm* comm = nullptr;
  bool is_one_host = false;
  bool is_said = false;       ///< that it has failed, to the other members
  bool leaves_alone = false;  ///< VBT_COLL_LEAVE_ALONE
  bool is_leaving = false;    ///< in vbt_coll_destroy_team: others may have left, and ended, before
  int error = 0;              ///< that has ended it
  int rank_at_fault = -1;     ///< of the team; -1: none known
  std::uint32_t requests = 0;  ///< that were not given back
  std::int64_t failed_at = 0;
  std::int64_t timeout_ns = 0;  ///< 0: none
  void (*idle)(void* context) = nullptr;
  void* context = nullptr;
  vbt_coll_team* next = nullptr;
  char name[64] = {};
  char why[256] = {};
};

namespace vmpi {

/// All that live.
extern vbt_coll_team* first_team;

/// Whether this is a child of the process that made the teams.
[[nodiscard]] bool is_forked_child() noexcept;
/// 0, or why nothing is to be done with it (EINVAL: it is none; EPERM), as refuse_call() says.
[[nodiscard]] int check_team(const vbt_coll_team* team, const char* function) noexcept;

/// The text of vbt_coll_why, and one line of the log where refusals are told. Returns `error`.
[[gnu::cold, gnu::format(printf, 2, 3)]] int refuse_call(int error, const char* format,
                                                         ...) noexcept;
/// Ends a team, unless it has ended: what is under way on it ends by and by (settle_failures()).
[[gnu::cold, gnu::format(printf, 4, 5)]] void fail_team(vbt_coll_team& team, int error,
                                                        int rank_at_fault, const char* format,
                                                        ...) noexcept;
/// Its time has run out.
void fail_by_time(vbt_coll_team& team, std::int64_t ns) noexcept;
/// Of all teams that have failed: the others hear of it, and what nobody will answer is given up.
void settle_failures() noexcept;
/// What the library answers for an error of the engine's (MPI_SUCCESS: none, and the team lives).
[[nodiscard]] int answer_for(vbt_coll_team& team, int engine_error) noexcept;
/// Sets the engine's words for what happens to peers.
void hear_of_failures() noexcept;

/// A call that waits: its team's time and the program's idle function go with it. On the stack of
/// the thread that waits.
class WaitingCall {
 public:
  /// `timeout_ns` 0: as long as all live; else since then, or, if that is 0, from the first wait on.
  WaitingCall(vbt_coll_team& team, std::int64_t timeout_ns, std::int64_t since = 0) noexcept;
  ~WaitingCall();
  WaitingCall(const WaitingCall&) = delete;
  WaitingCall& operator=(const WaitingCall&) = delete;

  /// Nothing has moved.
  void wait_in_vain() noexcept;

 private:
  vbt_coll_team* team_;
  std::int64_t timeout_ns_;
  std::int64_t since_;
  std::int64_t idle_at_ = 0;  ///< 0: not set yet
};

}  // namespace vmpi
