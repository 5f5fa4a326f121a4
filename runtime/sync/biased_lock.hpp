// SPDX-License-Identifier: BSD-2-Clause
// A spin lock that a thread which keeps coming back takes without an atomic read-modify-write.
//
// Most queues that must be thread-safe are used by one thread. Once the same thread has taken the
// lock kFirstStreak times in a row it becomes the owner: from then on it says with a plain store
// that it is inside. Anyone else takes the bias away first, and lets the kernel run the fence that
// the owner did not pay (membarrier): some microseconds, at most once in kStreak takes, since the
// second time it takes so many to own it. Where membarrier is refused nobody becomes owner, and
// this is a spin lock.
//
// Only one thread in a lock's life can become owner, the first that qualifies: `inside_` then has
// one writer, who may be late with it (stopped between its two looks at `owner_`) without harm.
//
// A thread domain declares itself the owner instead: whoever speaks for it (lock_in_domain(), one
// thread at a time by contract) never spins, unless a guest is inside, and stays the owner when the
// guest has left.
//
// Any thread; not recursive; not fair. Costs a microsecond to move between threads, so not for
// locks that alternate: those never reach a streak.
#pragma once

#include <atomic>
#include <cstdint>

#include <sched.h>

#include "runtime/sync/membarrier.hpp"
#include "runtime/sync/pause.hpp"
#include "runtime/sync/spin_lock.hpp"

namespace verbatim {

/// Its address tells threads apart, and is one addition to the thread pointer. Not 0: of a thread
/// that becomes the owner of none.
[[gnu::tls_model("initial-exec")]] inline thread_local constinit char thread_mark = 0;

class BiasedLock {
 public:
  /// Few: of a thousand queue pairs that take turns each is to be owned soon.
  static constexpr std::uint32_t kFirstStreak = 64;
  static constexpr std::uint32_t kStreak = 4096;

  /// The calling thread takes locks on others' behalf, and is to become the owner of none.
  static void own_none() noexcept { thread_mark = 1; }

  constexpr BiasedLock() noexcept = default;
  BiasedLock(const BiasedLock&) = delete;
  BiasedLock& operator=(const BiasedLock&) = delete;

  void lock() noexcept {
    if (!enter_as_owner(&thread_mark)) lock_by_spinning(&thread_mark);
  }
  /// Takes the lock for whoever speaks for the domain that declared itself the owner.
  void lock_in_domain() noexcept {
    if (!enter_as_owner(domain())) lock_by_spinning(domain());
  }
  /// Takes it if that needs no more than the owner's two plain words. False: lock() may still.
  /// Ends with let_go_as_owner().
  [[nodiscard, gnu::always_inline]] bool take_as_owner() noexcept {
    return enter_as_owner(&thread_mark);
  }
  [[nodiscard, gnu::always_inline]] bool take_as_domain() noexcept {
    return enter_as_owner(domain());
  }
  [[gnu::always_inline]] void let_go_as_owner() noexcept {
    // As unlock()'s.
    inside_.store(false, std::memory_order_release);
  }
  /// Takes the lock unless somebody is inside. It never waits, nor for a lock that a domain has
  /// declared its own.
  [[nodiscard]] bool try_lock() noexcept {
    if (!spin_.try_lock()) return false;
    if (owner_.load(std::memory_order_relaxed) != nullptr) {
      was_revoked_ = true;
      const char* const owner = owner_.load(std::memory_order_relaxed);
      owner_.store(nullptr, std::memory_order_relaxed);
      if (!fence_or_outwait_registered_threads()) is_declared_ = false;
      if (inside_.load(std::memory_order_acquire)) {
        owner_.store(owner, std::memory_order_release);
        spin_.unlock();
        return false;
      }
    }
    by_spinning_ = true;
    return true;
  }
  /// A thread domain takes it from here on, by lock_in_domain(). False: membarrier is refused, so
  /// it is taken like any other. REQUIRES: nobody has taken it yet.
  [[nodiscard]] bool declare() noexcept {
    if (!membarrier_registered.load(std::memory_order_relaxed)) return false;
    is_declared_ = true;
    candidate_ = domain();
    owner_.store(domain(), std::memory_order_release);
    return true;
  }
  /// Several domains, or none, take it from here on, by lock() only.
  void undeclare() noexcept {
    lock();
    is_declared_ = false;
    unlock();
  }

  /// REQUIRES: held by the caller.
  [[gnu::always_inline]] void unlock() noexcept {
    if (!by_spinning_) [[likely]] {
      // Publishes the critical section; pairs with the load in revoke().
      inside_.store(false, std::memory_order_release);
    } else {
      by_spinning_ = false;
      // Publishes what a guest did; pairs with the load in enter_as_owner().
      if (is_declared_) owner_.store(domain(), std::memory_order_release);
      spin_.unlock();
    }
  }

  /// Somebody may take it without a read-modify-write. Outdated at once, for tests and reports.
  bool is_owned() const noexcept { return owner_.load(std::memory_order_relaxed) != nullptr; }

 private:
  const char* domain() const noexcept { return reinterpret_cast<const char*>(this); }

  bool enter_as_owner(const char* self) noexcept {
    if (owner_.load(std::memory_order_relaxed) != self) [[unlikely]]
      return false;
    inside_.store(true, std::memory_order_relaxed);
    // The compiler keeps the order; the processor is made to by revoke().
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // Acquire: a guest may have been inside since.
    if (owner_.load(std::memory_order_acquire) == self) [[likely]]
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
    } else if (++streak_ == (was_revoked_ ? kStreak : kFirstStreak)) {
      grant(self);
    }
  }

  /// Held by the caller, by spinning: takes effect for its next lock().
  void grant(const char* self) noexcept {
    streak_ = 0;
    if (is_declared_ || *self != 0) return;
    if (!membarrier_registered.load(std::memory_order_relaxed)) return;
    if (candidate_ == nullptr) candidate_ = self;
    if (candidate_ == self) owner_.store(self, std::memory_order_relaxed);
  }

  [[gnu::cold, gnu::noinline]] void revoke() noexcept {
    was_revoked_ = true;
    owner_.store(nullptr, std::memory_order_relaxed);
    // After this, either the owner's second look at owner_ finds it gone, or we see it inside.
    if (!fence_or_outwait_registered_threads()) [[unlikely]]
      is_declared_ = false;
    for (std::uint32_t spins = 1; inside_.load(std::memory_order_acquire); ++spins) {
      cpu_pause();
      if (spins % 1024 == 0) ::sched_yield();
    }
  }

  std::atomic<const char*> owner_{nullptr};
  std::atomic<bool> inside_{false};
  bool by_spinning_ = false;  ///< guarded by the lock itself, like all that follows
  bool is_declared_ = false;
  bool was_revoked_ = false;
  SpinLock spin_;
  std::uint32_t streak_ = 0;
  const char* last_ = nullptr;
  const char* candidate_ = nullptr;
};

/// Holds a lock that belongs to a thread domain, if it does, on the domain's behalf.
class [[nodiscard]] DomainGuard {
 public:
  DomainGuard(BiasedLock& lock, bool in_domain) noexcept : lock_(lock) {
    if (in_domain) [[unlikely]]
      lock_.lock_in_domain();
    else
      lock_.lock();
  }
  DomainGuard(const DomainGuard&) = delete;
  DomainGuard& operator=(const DomainGuard&) = delete;
  ~DomainGuard() { lock_.unlock(); }

 private:
  BiasedLock& lock_;
};

}  // namespace verbatim
