// SPDX-License-Identifier: BSD-2-Clause
// What this process is among those that were started with it, by the launcher's word
// (bootstrap.hpp). Where there is no launcher, but teams (mpi_shim/teams), the world grows with
// them: ranks in it are this process's own numbers for the processes that it has met, itself 0.
#pragma once

#include <cstddef>

namespace vmpi {

enum class Stage { kBefore, kRunning, kFinalized };

struct World {
  Stage stage = Stage::kBefore;
  int rank = 0;
  int size = 1;
  int app_number = 0;
  int universe_size = 0;  ///< 0: the launcher does not say
  int thread_level = 0;   ///< MPI_THREAD_*

  bool is_of_teams = false;
  // Of teams:
  bool is_one_host = false;  ///< all members of the first one are here
  int here = 1;              ///< most members of a team that are
};

extern World world;

/// The launcher's side: PMI-1 (Hydra, `verbatim run`), PMI-2 (Slurm), or nobody: one rank.
/// Finds out which, and fills `world`. Empty, or why it cannot be: variables that lie, a launcher
/// that speaks PMIx alone.
[[nodiscard]] const char* begin_bootstrap() noexcept;
/// Keys and values are text without spaces or '=' or ';', of up to 60 and 900 characters. False: the
/// launcher refused or is gone.
[[nodiscard]] bool publish(const char* key, const char* value) noexcept;
/// What the launcher knows of a key. Of one that is not there it says so, to all ranks alike; silent it may be
/// to this rank alone.
enum class KeyAnswer { kValue, kNoSuchKey, kSilence };
/// What was published before the last barrier.
[[nodiscard]] KeyAnswer look_up(const char* key, char* value, std::size_t room) noexcept;
/// On which nodes the launcher has put the ranks (PMI_process_mapping).
[[nodiscard]] KeyAnswer look_up_mapping(char* value, std::size_t room) noexcept;
[[nodiscard]] bool bootstrap_barrier() noexcept;
/// The barrier in two parts, for who has messages to move on meanwhile.
enum class BarrierState { kLeft, kWaiting, kBroken };
[[nodiscard]] bool enter_bootstrap_barrier() noexcept;
[[nodiscard]] BarrierState leave_bootstrap_barrier(int milliseconds) noexcept;
void end_bootstrap() noexcept;
/// Tells the launcher to end all; does not return if it can help it.
void bootstrap_abort(int code, const char* message) noexcept;

}  // namespace vmpi
