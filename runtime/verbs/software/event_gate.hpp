// SPDX-License-Identifier: BSD-2-Clause
// What makes a queue in memory look like a kernel's descriptor: readable while something is queued,
// so that applications poll() it, and a way to sleep until something comes. Part of the software
// defaults; the queues are in soft_channel and soft_events.
//
// Invariant, under the mutex: the descriptor is readable exactly while the owner's queue is not
// empty. The application may set O_NONBLOCK on it, and must not read it.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/base/unique_fd.hpp"
#include "runtime/sync/mutex.hpp"

namespace verbatim {

class EventGate {
 public:
  /// 0 or errno (EMFILE, ENFILE, ENOMEM).
  [[nodiscard]] int open() noexcept;
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] Mutex& mutex() noexcept { return mutex_; }

  /// An event was queued. Ends the caller's critical section: waking is for after it.
  void announce_and_unlock(bool was_empty) noexcept;
  /// The last event was taken.
  void became_empty_locked() noexcept;
  /// Nothing was queued: sleeps until something is, or says EAGAIN (O_NONBLOCK) or EINTR. Ends the
  /// caller's critical section; the caller looks again after 0.
  [[nodiscard]] int wait_and_unlock() noexcept;

 private:
  UniqueFd fd_;
  Mutex mutex_;
  std::atomic<std::uint32_t> arrivals_{0};  ///< written under the mutex; sleepers watch it
  /// Under the mutex. A cancelled sleeper stays counted: that costs a needless wake, no more.
  std::uint32_t sleepers_ = 0;
};

}  // namespace verbatim
