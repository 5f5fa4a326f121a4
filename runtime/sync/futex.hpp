// SPDX-License-Identifier: BSD-2-Clause
// Sleeping on a word. Unlike poll(2), a futex wait honours SA_RESTART, so a blocking verb built on
// it is interrupted by exactly the signals that would interrupt a read(2). Spec: futex(2).
#pragma once

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace verbatim {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

/// Sleeps while `word` holds `expected`. 0 when woken or when the word had changed already
/// (callers test their condition again either way), EINTR when a signal handler ran.
/// `shared` tells whether the word lies in memory that other processes map too.
inline int futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                      bool shared = false) noexcept {
  const int operation = shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE;
  if (::syscall(SYS_futex, &word, operation, expected, nullptr, nullptr, 0) == 0) return 0;
  return errno == EAGAIN ? 0 : errno;
}

/// Wakes up to `count` sleepers of futex_wait on `word`.
inline void futex_wake(std::atomic<std::uint32_t>& word, int count = INT_MAX,
                       bool shared = false) noexcept {
  const int operation = shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE;
  ::syscall(SYS_futex, &word, operation, count, nullptr, nullptr, 0);
}

}  // namespace verbatim
