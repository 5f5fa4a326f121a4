// SPDX-License-Identifier: BSD-2-Clause
// Fences paid by one side: the rare side makes the kernel run a full memory barrier on every
// running thread of every registered process, the frequent side pays nothing (its loads and stores
// must only stay in program order). Any thread. Source: membarrier(2),
// MEMBARRIER_CMD_GLOBAL_EXPEDITED.
#pragma once

#include <linux/membarrier.h>

#include <atomic>

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace verbatim {

/// This process has registered: its threads are reached by fence_registered_threads().
inline constinit std::atomic<bool> membarrier_registered{false};

/// Registers this process; from then on for its life. False with errno: the kernel, or a filter of
/// system calls, refuses.
inline bool register_for_membarrier() noexcept {
  if (::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) != 0) return false;
  membarrier_registered.store(true, std::memory_order_release);
  return true;
}

/// A full fence on every running thread of every registered process, and on the caller. 0.4 us
/// while they sleep, some 5 us while they run. False: the kernel refused, nobody was reached.
[[nodiscard]] inline bool fence_registered_threads() noexcept {
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
}

/// The fence of fence_registered_threads for those who cannot go on without it. A filter of system
/// calls may have come after we registered: no store stays in a processor's buffer for anything
/// like this long, and nobody relies on membarrier any more. False: it was done that way.
inline bool fence_or_outwait_registered_threads() noexcept {
  if (fence_registered_threads()) return true;
  membarrier_registered.store(false, std::memory_order_relaxed);
  const timespec pause{0, 10'000'000};
  (void)::nanosleep(&pause, nullptr);
  return false;
}

}  // namespace verbatim
