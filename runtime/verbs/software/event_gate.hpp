// SPDX-License-Identifier: BSD-2-Clause
// What makes a queue in memory look like a kernel's descriptor: readable while something is queued,
// so that applications poll() it, and a way to sleep until something comes. Part of the software
// defaults; the queues are in soft_comp_channel and soft_events.
//
// Invariant, under the mutex: the descriptor is readable exactly while the owner's queue is not
// empty; while somebody collects (below) it may not be so yet. The application may set O_NONBLOCK
// on it, and must not read it.
//
// Other processes may wake our sleepers, for something that they know of and that is not queued
// yet: whoever wakes collects it.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/base/kept_fd.hpp"
#include "runtime/sync/mutex.hpp"

namespace verbatim {

/// How threads that want an event show themselves to other processes, in memory that those map. All
/// of it outlives the gate; a gate has its own `bed` and `on_the_way`.
struct SharedBed {
  /// Never changes: others wake who sleeps there by futex(2).
  std::atomic<std::uint32_t>* bed;
  /// How many are between begin_way() and end_way(). Whoever has made something due and finds
  /// nobody asleep may leave it to them.
  std::atomic<std::uint32_t>* on_the_way;
  /// Four bytes, not zero while something is due: nobody falls asleep then.
  const void* due;
  /// Lets somebody else look, if something is due: who was on the way to it has gone.
  void (*look_for_us)() noexcept;
};

class EventGate {
 public:
  /// 0 or errno (EMFILE, ENFILE, ENOMEM).
  [[nodiscard]] int open() noexcept;
  /// Other processes may wake our sleepers there, for something that `due` tells of. False: that
  /// is not possible before Linux 5.16. REQUIRES: nobody sleeps.
  [[nodiscard]] bool let_others_wake(const SharedBed& shared) noexcept;
  /// Around all that a thread does to get an event: others count on it meanwhile.
  void begin_way() noexcept;
  void end_way() noexcept;
  /// Others may find sleepers: who found nothing last slept, so the application does not poll().
  [[nodiscard]] bool is_slept_at() const noexcept {
    return is_slept_at_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] Mutex& mutex() noexcept { return mutex_; }

  /// An event was queued. Ends the caller's critical section: waking is for after it.
  void announce_and_unlock() noexcept;
  /// The last event was taken.
  void became_empty_locked() noexcept;
  /// Between these two the caller queues events of which it takes one itself: for that one neither
  /// the descriptor nor a sleeper is troubled.
  void begin_collecting() noexcept;
  void end_collecting_locked(bool empty) noexcept;
  /// Nothing was queued: sleeps until something is, or says EAGAIN (O_NONBLOCK) or EINTR. Ends the
  /// caller's critical section; the caller looks again after 0.
  [[nodiscard]] int wait_and_unlock() noexcept;

  /// In a forked child, whose descriptor is still its parent's: from here on it is one of the
  /// child's own, and readable, so that nobody waits there for what cannot come. The lock is free.
  void part_from_parent() noexcept;
  /// The application has closed descriptors of ours: if this is among them, what was its number is
  /// left alone from here on.
  void doubt_descriptor() noexcept;

 private:
  void make_readable_locked() noexcept;
  int sleep(std::uint32_t seen) noexcept;
  int fall_asleep(std::uint32_t seen) noexcept;
  void leave_bed() noexcept;

  KeptFd fd_;
  Mutex mutex_;
  /// Written under the mutex; our own threads wake who sleeps on it.
  std::atomic<std::uint32_t> arrivals_{0};
  std::atomic<std::uint32_t> sleepers_{0};  ///< counted up under the mutex
  SharedBed shared_{};                      ///< without a bed: others wake nobody
  std::atomic<bool> is_slept_at_{false};    ///< with shared_
  bool is_readable_ = false;                ///< under the mutex: the descriptor
  std::uint32_t collectors_ = 0;            ///< under the mutex
};

}  // namespace verbatim
