// SPDX-License-Identifier: BSD-2-Clause
//
// By what waits for other processes are measured: the time in which this process was there to hear
// them. What they said while nobody of ours read it lies in our sockets, and what they would have
// answered was not asked. So this clock
//
//   stands at the moment up to which the service thread has read everything, and
//   leaves out what the thread was away, beyond kAway for each time: without a core, stopped, the
//   whole machine paused.
//
// A wait that begins takes begin(), adds what it grants, and is over when heard() has come to that.
// No wait is shorter by this than it was to be, and while the thread lives every one ends. Should
// the thread hang for good (in a line of the log that nobody reads), a process that goes on asking
// is told the plain time after kHangs of asking.
//
// A service thread says; any thread asks.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/time/clock.hpp"

namespace verbatim {

class WaitClock {
 public:
  /// Of a turn of the service thread so much counts, beside what it meant to sleep.
  static constexpr std::uint64_t kAway = 100'000'000;
  static constexpr std::uint64_t kHangs = 10'000'000'000;

  /// What it would say now if the thread read everything in this moment and had not been away.
  [[nodiscard]] std::uint64_t now() const noexcept {
    // First what is left out: an absence that ends in between makes a wait longer, not shorter.
    const std::uint64_t left_out = left_out_.load(std::memory_order_acquire);
    return now_ns() - left_out;
  }
  /// The beginning of a wait. In the middle of an absence it is where that began: what will be left
  /// out for it has not been left out yet.
  [[nodiscard]] std::uint64_t begin() const noexcept {
    const std::uint64_t left_out = left_out_.load(std::memory_order_acquire);
    const std::uint64_t due = due_.load(std::memory_order_acquire);
    const std::uint64_t plain = now_ns();
    const bool hangs = asked_.load(std::memory_order_relaxed) >= kHangs;
    return (plain < due || hangs ? plain : due) - left_out;
  }
  /// How far it has come. `now`: as now() says.
  [[nodiscard]] std::uint64_t heard(std::uint64_t now) noexcept {
    const std::uint64_t heard = heard_.load(std::memory_order_acquire);
    if (now < heard || now - heard < kHangs) [[likely]]
      return heard;
    return heard_by_asking(now, heard);
  }

  // --- the service thread's

  /// It begins, at `now`.
  void start(std::uint64_t now) noexcept {
    turned_ = now;
    slept_ = 0;
    sleeps_until(now);
    heard_.store(now - left_out_.load(std::memory_order_relaxed), std::memory_order_release);
  }
  /// It means to sleep until then: later it is away. REQUIRES: it is not behind, or what it was
  /// away is left out next.
  void sleeps_until(std::uint64_t date) noexcept {
    due_.store(date + kAway, std::memory_order_release);
  }
  /// It slept so long, as it meant to.
  void slept(std::uint64_t ns) noexcept { slept_ += ns; }
  /// It was away since it has last read everything.
  [[nodiscard]] bool is_behind(std::uint64_t now) const noexcept {
    return now - turned_ > slept_ + kAway;
  }
  /// What had come until `now` has been read.
  void hear(std::uint64_t now) noexcept {
    std::uint64_t left_out = left_out_.load(std::memory_order_relaxed);
    if (is_behind(now)) {
      left_out += now - turned_ - slept_ - kAway;
      // Before what is left out: who sees that begins no wait where the absence began.
      sleeps_until(now_ns());
    }
    turned_ = now;
    slept_ = 0;
    left_out_.store(left_out, std::memory_order_release);
    heard_.store(now - left_out, std::memory_order_release);
    if (asked_.load(std::memory_order_relaxed) != 0) asked_.store(0, std::memory_order_relaxed);
  }

 private:
  /// Counts the time in which somebody asks as that of the thread is counted. Threads that ask at
  /// once may count too little.
  [[gnu::cold]] std::uint64_t heard_by_asking(std::uint64_t now, std::uint64_t heard) noexcept {
    const std::uint64_t before = asked_at_.exchange(now, std::memory_order_relaxed);
    if (asked_of_.exchange(heard, std::memory_order_relaxed) != heard) {
      asked_.store(0, std::memory_order_relaxed);
      return heard;
    }
    const std::uint64_t step = now > before ? now - before : 0;
    const std::uint64_t asked =
        asked_.fetch_add(step < kAway ? step : kAway, std::memory_order_relaxed);
    return asked < kHangs ? heard : now;
  }

  std::atomic<std::uint64_t> heard_{0};
  std::atomic<std::uint64_t> left_out_{0};             ///< all that the thread was away
  std::atomic<std::uint64_t> due_{~std::uint64_t{0}};  ///< later the thread is away
  std::atomic<std::uint64_t> asked_at_{0};
  std::atomic<std::uint64_t> asked_of_{0};
  std::atomic<std::uint64_t> asked_{0};
  std::uint64_t turned_ = 0;
  std::uint64_t slept_ = 0;  ///< since then
};

/// Whether the wait until `date` is over, and the look after that was in vain too: between a look
/// and this question the asking thread may have been stopped itself. So the first answer after
/// `date` is no, and `date` remembers that. `heard`: WaitClock::heard(); 0 is no date.
inline bool is_over(std::uint64_t& date, std::uint64_t heard) noexcept {
  constexpr std::uint64_t kOnlyOneLookMore = 1;
  if (date == kOnlyOneLookMore) return true;
  if (heard >= date) date = kOnlyOneLookMore;
  return false;
}

}  // namespace verbatim
