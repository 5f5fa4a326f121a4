// SPDX-License-Identifier: BSD-2-Clause
//
// How long a poll waits before it looks at the doorbells. A look takes their lines away from those who
// ring, who wait until they have them back. Where many ring one after the other, a look that is put off
// after one that found few lets them go on meanwhile; where they wait for answers it is lost time. What
// is found does not tell one from the other, so it is measured: a thousand looks that are put off are
// compared with as many that are not, thrice, and what is faster is done for a while.
#pragma once

#include <cstdint>
#include <utility>

namespace verbatim::shm {

/// Under the completion queue's lock.
class Gathering {
 public:
  static constexpr std::uint32_t kPauses = 48;   ///< for which a look is put off: 1 to 2 us
  static constexpr std::uint32_t kWorth = 24;    ///< messages: after fewer the next look is put off
  static constexpr std::uint32_t kLooks = 1024;  ///< in a round
  static constexpr std::uint32_t kPairs = 3;     ///< of rounds that are compared
  static constexpr std::uint32_t kKept = 64;     ///< rounds for which that holds

  /// How often the next look has to cpu_pause() before.
  [[nodiscard]] std::uint32_t pauses() const noexcept { return pauses_; }
  /// A look has found so many messages; `is_full`: as many as there was room for. True: a round has
  /// ended, and is to be judged.
  [[nodiscard]] bool note(std::uint32_t found, bool is_full) noexcept {
    found_ += found;
    pauses_ = gathers_ && is_on_ && found < kWorth && !is_full ? kPauses : 0;
    ++looks_;
    if (looks_ % kGlance == 0) glance();
    return looks_ == kLooks;
  }
  /// REQUIRES: note() was true; `now` in ns.
  void judge(std::uint64_t now) noexcept {
    const std::uint64_t began = std::exchange(began_, now);
    const std::uint64_t found = std::exchange(found_, 0);
    looks_ = found_then_ = pauses_ = 0;
    if (began == 0) return;
    if (kept_ != 0) {
      if (--kept_ == 0) is_on_ = false;
      return;
    }
    const std::uint64_t cost = ((now - began) << 10) / (found + 1);  // of a message
    if (!is_on_) {
      cost_at_once_ = cost;
      is_on_ = true;
      return;
    }
    if (cost + cost / 16 < cost_at_once_) ++better_;
    is_on_ = false;
    if (++pairs_ != kPairs) return;
    is_on_ = 2 * better_ > kPairs;
    kept_ = kKept;
    pairs_ = better_ = 0;
  }

 private:
  static constexpr std::uint32_t kGlance = 16;

  /// Where one rings at a time, whoever does waits for us.
  void glance() noexcept {
    gathers_ = found_ - found_then_ > kGlance + kGlance / 4;
    found_then_ = found_;
  }

  std::uint32_t pauses_ = 0;
  std::uint32_t looks_ = 0;         ///< in this round
  std::uint32_t found_ = 0;         ///< by these
  std::uint32_t found_then_ = 0;    ///< at the last glance
  std::uint64_t began_ = 0;         ///< when this round did; 0: unknown
  std::uint64_t cost_at_once_ = 0;  ///< of a message, in the round before
  std::uint32_t kept_ = 0;          ///< rounds left of those that nothing is compared in
  std::uint8_t pairs_ = 0;          ///< that have been compared
  std::uint8_t better_ = 0;         ///< of them, how many speak for it
  bool gathers_ = false;            ///< more than one rings at a time
  bool is_on_ = false;              ///< in this round looks are put off
};

}  // namespace verbatim::shm
