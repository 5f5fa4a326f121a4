// SPDX-License-Identifier: BSD-2-Clause
//
// How long a poll waits before it looks at the doorbells. A look takes their lines away from those who
// ring, who wait until they have them back: where many ring, one that finds a score of messages is
// worth that, and one that finds a few is not. So after a look that found few the next is put off a
// little: it finds more, and those behind it, since the program answers many together, need no help
// for a while. Where that makes none find more, those who ring are few, and no look is put off for
// long.
#pragma once

#include <cstdint>
#include <utility>

namespace verbatim::shm {

/// Under the completion queue's lock.
class Gathering {
 public:
  static constexpr std::uint32_t kPauses = 48;  ///< for which a look is put off: 1 to 2 us
  static constexpr std::uint32_t kWorth = 24;   ///< messages: one that finds fewer is put off
  static constexpr std::uint32_t kLooks = 16;   ///< after which it is judged how many ring
  static constexpr std::uint32_t kLooksAtOnce = 16'000;

  /// How often the next look has to cpu_pause() before.
  [[nodiscard]] std::uint32_t pauses() const noexcept { return pauses_; }
  /// A look has found so many messages; `is_full`: as many as there was room for.
  void note(std::uint32_t found, bool is_full) noexcept {
    if (looks_at_once_ != 0) {
      --looks_at_once_;
      return;
    }
    found_ += found;
    if (pauses_ != 0) found < kFew ? ++vain_ : ++worthy_;
    pauses_ = gathers_ && found < kWorth && !is_full ? kPauses : 0;
    if (++looks_ == kLooks) judge();
  }

 private:
  static constexpr std::uint32_t kFew = 4;

  void judge() noexcept {
    const std::uint32_t found = std::exchange(found_, 0);
    const std::uint32_t vain = std::exchange(vain_, 0);
    const std::uint32_t worthy = std::exchange(worthy_, 0);
    looks_ = 0;
    gathers_ = found > kLooks + kLooks / 4;  // else who rings waits for us
    if (vain > 2 * worthy) {
      gathers_ = false;
      looks_at_once_ = kLooksAtOnce;
    }
    if (!gathers_) pauses_ = 0;
  }

  std::uint32_t pauses_ = 0;
  std::uint32_t looks_ = 0;   ///< since it was judged last
  std::uint32_t found_ = 0;   ///< by these
  std::uint32_t vain_ = 0;    ///< those of them that were put off, and found few
  std::uint32_t worthy_ = 0;  ///< and that found more
  std::uint32_t looks_at_once_ = 0;
  bool gathers_ = false;  ///< more than one rings at a time
};

}  // namespace verbatim::shm
