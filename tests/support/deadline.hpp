// SPDX-License-Identifier: BSD-2-Clause
//
// Every wait of a test is bounded. A Deadline is made where the wait begins and asked inside its
// loop.
#pragma once

#include <sched.h>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace verbatim::harness {

/// Long enough for a loaded machine under a sanitizer, short enough for a person; who hunts a hang
/// builds with less.
#ifndef VERBATIM_TEST_WAIT_MS
#define VERBATIM_TEST_WAIT_MS 20'000
#endif

/// Below, a test would fail for nothing; above, a hang would outlast what runs the tests.
inline constexpr std::int32_t kLeastWaitMs = 100;
inline constexpr std::int32_t kMostWaitMs = 600'000;

/// Nothing for what is no number of milliseconds within those.
inline std::optional<std::int32_t> parse_wait_ms(std::string_view text) {
  std::int32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end) return std::nullopt;
  if (value < kLeastWaitMs || value > kMostWaitMs) return std::nullopt;
  return value;
}

/// The environment variable VERBATIM_TEST_WAIT_MS, for machines that are slower by an order: those
/// emulated. A value that means nothing ends the program, since what it would show is not what was
/// asked for.
inline std::int32_t wait_ms_of_environment() {
  const char* const text = std::getenv("VERBATIM_TEST_WAIT_MS");
  if (text == nullptr) return VERBATIM_TEST_WAIT_MS;
  if (const auto value = parse_wait_ms(text)) return *value;
  std::fprintf(stderr, "VERBATIM_TEST_WAIT_MS=%s: must be a number from %d to %d\n", text,
               static_cast<int>(kLeastWaitMs), static_cast<int>(kMostWaitMs));
  std::exit(2);
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

/// Looks until `condition` holds; false when the deadline passed first. Yields between looks, since
/// what is waited for may need this very core.
template <class Condition>
[[nodiscard]] bool wait_until(Condition&& condition, std::int32_t wait_ms = kDefaultWaitMs) {
  const Deadline deadline(wait_ms);
  while (!condition()) {
    if (deadline.passed()) return false;
    sched_yield();
  }
  return true;
}

}  // namespace verbatim::harness
