// SPDX-License-Identifier: BSD-2-Clause
// A lock of one byte for critical sections of a few dozen instructions without syscalls. Any
// thread; not recursive; not fair. It yields the core after a bounded spin, because the holder may
// be the one who was preempted (more runnable threads than cores).
#pragma once

#include <atomic>

#include <sched.h>

#include "runtime/sync/pause.hpp"

namespace verbatim {

class SpinLock {
 public:
  constexpr SpinLock() noexcept = default;
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

  void lock() noexcept {
    if (taken_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      wait_and_lock();
  }
  [[nodiscard]] bool try_lock() noexcept {
    return !taken_.load(std::memory_order_relaxed) &&
           !taken_.exchange(true, std::memory_order_acquire);
  }
  /// REQUIRES: held by the caller. Publishes the critical section; pairs with the exchange in
  /// lock().
  void unlock() noexcept { taken_.store(false, std::memory_order_release); }

 private:
  [[gnu::cold, gnu::noinline]] void wait_and_lock() noexcept {
    constexpr int kSpinsBeforeYield = 1000;
    do {
      // Waiting reads keep the line shared; only a lock seen free is worth another exchange.
      int spins = 0;
      while (taken_.load(std::memory_order_relaxed)) {
        if (++spins < kSpinsBeforeYield) {
          cpu_pause();
        } else {
          ::sched_yield();
          spins = 0;
        }
      }
    } while (taken_.exchange(true, std::memory_order_acquire));
  }

  std::atomic<bool> taken_{false};
};

/// Holds any lock with lock()/unlock() for a scope.
template <class Lock>
class [[nodiscard]] LockGuard {
 public:
  explicit LockGuard(Lock& lock) noexcept : lock_(lock) { lock_.lock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;
  ~LockGuard() { lock_.unlock(); }

 private:
  Lock& lock_;
};

}  // namespace verbatim
