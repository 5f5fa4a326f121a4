// SPDX-License-Identifier: BSD-2-Clause
//
// Processes that the log has named for what they did wrong: each once, however often it does it
// again. Any thread. The longest ago is forgotten first.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace verbatim::shm {

class Offenders {
 public:
  constexpr Offenders() noexcept = default;

  /// True when nothing was said of `pid` yet. (Two threads at once may both hear it.)
  [[nodiscard]] bool first_word_of(pid_t pid) noexcept {
    for (const auto& known : named_) {
      if (known.load(std::memory_order_relaxed) == pid + kOffset) return false;
    }
    named_[next_.fetch_add(1, std::memory_order_relaxed) % kRemembered].store(
        pid + kOffset, std::memory_order_relaxed);
    return true;
  }

 private:
  static constexpr std::uint32_t kRemembered = 32;
  static constexpr pid_t kOffset = 1;  // pid 0 is one that we cannot see, not an empty place
  std::atomic<pid_t> named_[kRemembered] = {};
  std::atomic<std::uint32_t> next_{0};
};

inline constinit Offenders offenders;

}  // namespace verbatim::shm
