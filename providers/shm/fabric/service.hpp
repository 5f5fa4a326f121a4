// SPDX-License-Identifier: BSD-2-Clause
//
// The service thread: one per process, started by Process::start(), asleep in epoll unless somebody wants
// something.
//
//   wake eventfd   a thread of ours rang a doorbell, or wants a connect, an arena, the tick
//   wake socket    peers rang a doorbell
//   sockets        strangers and peers (connection_manager)
//   pidfds         a peer ended
//   time           1 ms tick while asked for
//                  50 ms sweep while a peer lives
//                  each second: whether our descriptors are still open (service_failure.cpp)
//                  each second: a look at our names while the thread is awake anyhow, a try to
//                  bring them back while they are lost
//                  the connection manager's own dates, and the data path's, to the microsecond
//
// It has all signals blocked, a small stack, and holds no lock while it calls the data path's
// hooks.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <span>

#include "providers/shm/fabric/connection_manager.hpp"
#include "providers/shm/fabric/own_names.hpp"
#include "runtime/base/kept_fd.hpp"
#include "runtime/time/wait_clock.hpp"

struct epoll_event;

namespace verbatim::shm {

class Service {
 public:
  static constexpr std::uint64_t kTickNs = 1'000'000;
  static constexpr std::uint64_t kSweepNs = 50'000'000;

  explicit Service(const Surroundings& around) noexcept : around_(around), connections_(around) {}

  /// Makes the descriptors and the thread. 0 or an errno, logged.
  int start() noexcept;
  /// Ends and joins the thread, then closes all sockets. In a forked child there is no thread to
  /// join.
  void stop(bool forked) noexcept;

  /// The application has closed what the thread needs. Nothing is served any more, and no
  /// descriptor used; the hooks of the clock go on, so that what flushes is told to who sleeps.
  [[nodiscard]] bool has_failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  [[nodiscard]] int wake_fd() const noexcept { return wake_.get(); }
  void wake() noexcept;
  void want_tick(bool on) noexcept;
  [[nodiscard]] bool on_thread() const noexcept;
  [[nodiscard]] WaitClock& wait_clock() noexcept { return wait_clock_; }
  /// What a forked child must not keep.
  void close_in_child() noexcept {
    connections_.close_listeners();
    peer_wakes_.close();
  }

  [[nodiscard]] OwnNames& names() noexcept { return names_; }
  /// OwnNames::look. What is lost, the thread brings back.
  bool look_at_names(std::uint64_t now, std::uint64_t fresh_ns) noexcept;
  /// Has the thread look at them, when it is awake.
  void doubt_names() noexcept { doubted_.store(true, std::memory_order_release); }

 private:
  static void* run(void* self) noexcept;
  void loop() noexcept;
  bool watch(int fd, EventSource& source) noexcept;
  /// Whether what the thread waits at is still open under its numbers.
  [[nodiscard]] bool has_its_descriptors() const noexcept;
  /// The same, looked at not more often than each millisecond.
  [[nodiscard]] bool has_its_descriptors_lately() noexcept;
  /// A fresh look; when they are gone, the thread's next one is fresh too.
  [[nodiscard]] bool has_its_descriptors_now() noexcept;
  void fail() noexcept;
  void linger() noexcept;
  /// True: nothing that had come to our sockets is left.
  bool handle(std::span<epoll_event> events) noexcept;
  /// Where the time went in which it heard nobody. `asleep`: beyond what it meant to sleep.
  void say_away(std::uint64_t asleep, std::uint64_t at_events, std::uint64_t at_dates) noexcept;
  void on_wake() noexcept;
  void drain_doorbells() noexcept;
  static constexpr std::uint64_t kForEver = ~std::uint64_t{0};
  /// When it wants to be called again. `is_busy`: the thread is awake now and then, or others come
  /// and go.
  std::uint64_t tend_names(std::uint64_t now, bool is_busy) noexcept;
  int heal_names(OwnNames::Reason& reason) noexcept;
  /// Until when to sleep; kForEver: until something happens. `exact`: rounding up is too late.
  std::uint64_t run_due(bool& exact) noexcept;
  /// The milliseconds for epoll_wait(2); has slept itself where those are too long, for `slept` ns.
  int sleep_until(std::uint64_t date, bool exact, std::uint64_t& slept) noexcept;

  Surroundings around_;
  WaitClock wait_clock_;
  ConnectionManager connections_;
  OwnNames names_{around_.folder, connections_};
  KeptFd epoll_;
  KeptFd wake_;  ///< nobody else has it
  WakeSockets peer_wakes_;
  EventSource wake_source_{EventSource::kWake, this};
  EventSource peer_wake_source_{EventSource::kPeerWake, this};
  pthread_t thread_{};
  std::atomic<bool> running_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> failed_{false};
  std::atomic<bool> ticking_{false};
  std::atomic<std::uint32_t> wakes_{0};  ///< by our own threads: orders, what the eventfd says
  std::uint64_t next_tick_ = 0;          ///< 0: the tick was off
  std::uint64_t next_sweep_ = 0;
  std::uint64_t looked_at_ = 0;  ///< our descriptors
  std::uint32_t sweeps_ = 0;
  std::uint64_t said_away_at_ = 0;
  std::atomic<bool> doubted_{false};  ///< our names
  bool is_down_ = false;              ///< they are lost, and that was said
  int heal_error_ = 0;                ///< the last that was said
  std::uint64_t next_look_ = 0;
  std::uint64_t next_heal_ = 0;
};

}  // namespace verbatim::shm
