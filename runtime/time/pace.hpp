// SPDX-License-Identifier: BSD-2-Clause
//
// Work of which only so much is done in a time, however often somebody asks for it. Counted in
// steps, not by the clock: who is kept from his core in the middle of it has not done more. One
// thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace verbatim {

class Pace {
 public:
  /// Who has rested may do so much at once, and whatever belongs to it.
  static constexpr std::uint64_t kAheadNs = 10'000'000;

  /// A step that really takes a fifth of `step_ns` leaves four fifths of a core to others.
  constexpr explicit Pace(std::uint64_t step_ns) noexcept : step_ns_(step_ns) {}

  [[nodiscard]] bool allows_more(std::uint64_t now_ns) const noexcept {
    return spent_until_ns_ <= now_ns + kAheadNs;
  }
  void spend(std::uint64_t steps, std::uint64_t now_ns) noexcept {
    spent_until_ns_ = std::max(spent_until_ns_, now_ns) + steps * step_ns_;
  }

 private:
  std::uint64_t step_ns_;
  std::uint64_t spent_until_ns_ = 0;
};

}  // namespace verbatim
