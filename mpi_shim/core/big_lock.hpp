// SPDX-License-Identifier: BSD-2-Clause
// One lock around the whole library for programs with MPI_THREAD_MULTIPLE; for all others nothing.
// Taken by each MPI function that touches more than its arguments (api/entry.hpp), given up while it
// waits (Engine::wait_until).
#pragma once

#include "runtime/sync/mutex.hpp"

namespace vmpi {

class BigLock {
 public:
  void be_needed(bool needed) noexcept { needed_ = needed; }
  [[nodiscard]] bool is_needed() const noexcept { return needed_; }
  void lock() noexcept {
    if (needed_) mutex_.lock();
  }
  void unlock() noexcept {
    if (needed_) mutex_.unlock();
  }

 private:
  verbatim::Mutex mutex_;
  bool needed_ = false;  ///< written in MPI_Init_thread alone
};

extern BigLock big_lock;

class [[nodiscard]] BigGuard {
 public:
  BigGuard() noexcept { big_lock.lock(); }
  ~BigGuard() { big_lock.unlock(); }
  BigGuard(const BigGuard&) = delete;
  BigGuard& operator=(const BigGuard&) = delete;
};

}  // namespace vmpi
