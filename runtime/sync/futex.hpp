// SPDX-License-Identifier: BSD-2-Clause
// Sleeping on a word. Unlike poll(2), a futex wait honours SA_RESTART, so a blocking verb built on
// it is interrupted by exactly the signals that would interrupt a read(2). Spec: futex(2).
#pragma once

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
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

/// One of several words to sleep on.
struct FutexWord {
  const void* address;  ///< of four bytes
  std::uint32_t expected;
  bool shared;
};

/// Sleeps until somebody wakes one of `words`; not if one of them does not hold what is expected.
/// Answers as futex_wait; ENOSYS before Linux 5.16. What a stranger does to one of them (he may
/// requeue its sleepers) leaves the others.
template <std::size_t N>
inline int futex_wait_on_any(const FutexWord (&words)[N]) noexcept {
  struct Waiter {  // futex_waitv, its number and its FUTEX_32, which older headers lack
    std::uint64_t value;
    std::uint64_t address;
    std::uint32_t flags;
    std::uint32_t reserved;
  };
#if defined(SYS_futex_waitv)
  constexpr long kCall = SYS_futex_waitv;
#else
  constexpr long kCall = 449;
#endif
  constexpr std::uint32_t kOfFourBytes = 2;
  Waiter waiters[N];
  for (std::size_t i = 0; i < N; ++i) {
    waiters[i] = {words[i].expected, reinterpret_cast<std::uintptr_t>(words[i].address),
                  kOfFourBytes | (words[i].shared ? 0u : std::uint32_t{FUTEX_PRIVATE_FLAG}), 0};
  }
  if (::syscall(kCall, waiters, N, 0, nullptr, 0) >= 0) return 0;
  return errno == EAGAIN ? 0 : errno;
}

/// Wakes up to `count` sleepers of futex_wait on `word`, and says how many. Shared memory may be
/// mapped for reading alone.
inline int futex_wake(const std::atomic<std::uint32_t>& word, int count = INT_MAX,
                      bool shared = false) noexcept {
  const int operation = shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE;
  const long woken = ::syscall(SYS_futex, &word, operation, count, nullptr, nullptr, 0);
  return woken > 0 ? static_cast<int>(woken) : 0;
}

}  // namespace verbatim
