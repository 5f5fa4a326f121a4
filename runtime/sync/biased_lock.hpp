// SPDX-License-Identifier: BSD-2-Clause
// A spin lock that a thread which keeps coming back takes without an atomic read-modify-write.
//
// Most queues that must be thread-safe are used by one thread. Once the same thread has taken the
// lock kStreak times in a row it becomes the owner: from then on it says with a plain store that it
// is inside. Anyone else takes the bias away first, and lets the kernel run the fence that the
// owner did not pay (membarrier): some microseconds, at most once in kStreak takes. Where
// membarrier is refused nobody becomes owner, and this is a spin lock.
//
// Only one thread in a lock's life can become owner, the first that qualifies: `inside_` then has
// one writer, who may be late with it (stopped between its two looks at `owner_`) without harm.
//
// Any thread; not recursive; not fair. Costs a microsecond to move between threads, so not for
// locks that alternate: those never reach a streak.
#pragma once

#include <atomic>
#include <cstdint>

#include <sched.h>
#include <time.h>

#include "runtime/sync/membarrier.hpp"
#include "runtime/sync/pause.hpp"
#include "runtime/sync/spin_lock.hpp"

namespace verbatim {

/// Its address tells threads apart, and is one addition to the thread pointer.
[[gnu::tls_model("initial-exec")]] inline thread_local constinit char thread_mark = 0;

class BiasedLock {
 public:
  static constexpr std::uint32_t kStreak = 4096;

  constexpr BiasedLock() noexcept = default;
  BiasedLock(const BiasedLock&) = delete;
  BiasedLock& operator=(const BiasedLock&) = delete;

  void lock() noexcept {
    if (!enter_as_owner(&thread_mark)) lock_by_spinning(&thread_mark);
  }
  /// REQUIRES: held by the caller.
  void unlock() noexcept {
    if (!by_spinning_) [[likely]] {
      // Publishes the critical section; pairs with the load in revoke().
      inside_.store(false, std::memory_order_release);
    } else {
      by_spinning_ = false;
      spin_.unlock();
    }
  }

  /// Somebody may take it without a read-modify-write. Outdated at once, for tests and reports.
  bool is_owned() const noexcept { return owner_.load(std::memory_order_relaxed) != nullptr; }

 private:
  bool enter_as_owner(const char* self) noexcept {
    if (owner_.load(std::memory_order_relaxed) != self) [[unlikely]]
      return false;
    inside_.store(true, std::memory_order_relaxed);
    // The compiler keeps the order; the processor is made to by revoke().
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (owner_.load(std::memory_order_relaxed) == self) [[likely]]
      return true;
    inside_.store(false, std::memory_order_release);
    return false;
  }

  [[gnu::noinline]] void lock_by_spinning(const char* self) noexcept {
    spin_.lock();
    if (owner_.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
      revoke();
    by_spinning_ = true;  // not before: the owner may have been inside until now
    if (last_ != self) {
      last_ = self;
      streak_ = 0;
    } else if (++streak_ == kStreak) {
      grant(self);
    }
  }

  /// Held by the caller, by spinning: takes effect for its next lock().
  void grant(const char* self) noexcept {
    streak_ = 0;
    if (!membarrier_registered.load(std::memory_order_relaxed)) return;
    if (candidate_ == nullptr) candidate_ = self;
    if (candidate_ == self) owner_.store(self, std::memory_order_relaxed);
  }

  [[gnu::cold, gnu::noinline]] void revoke() noexcept {
    owner_.store(nullptr, std::memory_order_relaxed);
    // After this, either the owner's second look at owner_ finds it gone, or we see it inside.
    if (!fence_registered_threads()) [[unlikely]]
      outwait_store_buffers();
    for (std::uint32_t spins = 1; inside_.load(std::memory_order_acquire); ++spins) {
      cpu_pause();
      if (spins % 1024 == 0) ::sched_yield();
    }
  }

  /// A filter of system calls came after we had registered. No store stays in a processor's buffer
  /// for anything like this long; and nobody becomes owner any more.
  static void outwait_store_buffers() noexcept {
    membarrier_registered.store(false, std::memory_order_relaxed);
    const timespec pause{0, 10'000'000};
    (void)::nanosleep(&pause, nullptr);
  }

  std::atomic<const char*> owner_{nullptr};
  std::atomic<bool> inside_{false};
  bool by_spinning_ = false;  ///< guarded by the lock itself, like all that follows
  SpinLock spin_;
  std::uint32_t streak_ = 0;
  const char* last_ = nullptr;
  const char* candidate_ = nullptr;
};

}  // namespace verbatim
