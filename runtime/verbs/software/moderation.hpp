// SPDX-License-Identifier: BSD-2-Clause
// Events that are held back (man ibv_modify_cq, IBV_CQ_ATTR_MODERATE): the event of an armed queue
// comes with the count-th completion since it was armed, or when the period has passed since the
// first. Off while either is 0, or the count is 1. The arithmetic alone, under the queue's lock; who
// looks at the dates is the provider's.
//
// Completions are of two kinds: those that are stored, which are counted at once, and those that lie
// with their senders until they are taken, of which some were there before the queue was armed.
#pragma once

#include <algorithm>
#include <cstdint>

namespace verbatim {

struct Moderation {
  std::uint16_t count = 0;
  std::uint16_t period_us = 0;
  std::uint32_t asked = 0;    ///< while held: what it was armed for, in the provider's words
  std::uint64_t since = 0;    ///< while held: the clock's time of the first completion
  std::uint64_t look_at = 0;  ///< while held: when the next look is due
  std::uint64_t stored = 0;   ///< completions stored since it was armed
  std::uint64_t taken = 0;    ///< of the second kind, ever
  std::uint64_t old = 0;      ///< those, and what waited to be taken, when it was armed

  [[nodiscard]] bool is_on() const noexcept { return count > 1 && period_us != 0; }
  [[nodiscard]] std::uint64_t period_ns() const noexcept { return period_us * std::uint64_t{1000}; }
  [[nodiscard]] std::uint64_t until() const noexcept { return since + period_ns(); }

  /// It has been armed, and `waiting` wait to be taken.
  void begin(std::uint64_t waiting) noexcept {
    stored = 0;
    old = taken + waiting;
  }
  /// Its first completion has come, at `now`; it was armed for `kind`.
  void hold(std::uint32_t kind, std::uint64_t now) noexcept {
    asked = kind;
    since = now;
  }
  /// How many that wait to be taken are enough; 0: there are enough without. One that was there when
  /// the queue was armed, and was taken since, counts among the old.
  [[nodiscard]] std::uint64_t missing() const noexcept {
    if (stored >= count) return 0;
    const std::uint64_t awaited = old + count - stored;
    return taken >= awaited ? 0 : awaited - taken;
  }
  /// When to look next, at `now`: some times in a period, unless that is short, and at its end.
  std::uint64_t look_again(std::uint64_t now) noexcept {
    constexpr std::uint64_t kLooks = 16, kBetweenLooksNs = 50'000;
    look_at = std::min(until(), now + std::max(period_ns() / kLooks, kBetweenLooksNs));
    return look_at;
  }
};

}  // namespace verbatim
