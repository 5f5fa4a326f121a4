// SPDX-License-Identifier: BSD-2-Clause
//
// Every wait of a test is bounded. A Deadline is made where the wait begins and asked inside its
// loop.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "tests/support/environment_number.hpp"

namespace verbatim::harness {

/// Long enough for a loaded machine under a sanitizer, short enough for a person; who hunts a hang
/// builds with less.
#ifndef VERBATIM_TEST_WAIT_MS
#define VERBATIM_TEST_WAIT_MS 20'000
#endif

/// Below, a test would fail for nothing; above, a hang would outlast what runs the tests.
inline constexpr std::int32_t kLeastWaitMs = 100;
inline constexpr std::int32_t kMostWaitMs = 600'000;

/// The environment variable VERBATIM_TEST_WAIT_MS, for machines that are slower by an order: those
/// emulated.
inline std::int32_t wait_ms_of_environment() {
  return number_of_environment("VERBATIM_TEST_WAIT_MS", VERBATIM_TEST_WAIT_MS, kLeastWaitMs,
                               kMostWaitMs);
}

inline const std::int32_t kDefaultWaitMs = wait_ms_of_environment();

class Deadline {
 public:
  explicit Deadline(std::int32_t wait_ms = kDefaultWaitMs)
      : end_(std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms)) {}

  bool passed() const { return std::chrono::steady_clock::now() >= end_; }

  /// For poll(2): at least 0.
  int remaining_ms() const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end_ - std::chrono::steady_clock::now());
    return left.count() > 0 ? static_cast<int>(left.count()) : 0;
  }

 private:
  std::chrono::steady_clock::time_point end_;
};

inline double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

/// Looks until `condition` holds; false when the deadline passed first. Yields between looks, since
/// what is waited for may need this very core; and sleeps between them once it has been long: among
/// dozens of processes that yield to each other, threads of the kernel that walk mapped files got
/// no core for seconds, and every mapping waited.
template <class Condition>
[[nodiscard]] bool wait_until(Condition&& condition, std::int32_t wait_ms = kDefaultWaitMs) {
  constexpr int kYields = 1000;
  const Deadline deadline(wait_ms);
  for (int looks = 0; !condition(); ++looks) {
    if (deadline.passed()) return false;
    if (looks < kYields)
      sched_yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

}  // namespace verbatim::harness
