// SPDX-License-Identifier: BSD-2-Clause
// Sets of the kernel's numbers, as it writes them: "0-3,8,10-11". No allocation.
#pragma once

#include <cstdint>

namespace verbatim::topo {

/// Room for the most processors that a Linux kernel can be built for.
class NumberSet {
 public:
  static constexpr std::uint32_t kEnd = 8192;

  constexpr NumberSet() noexcept = default;
  void clear() noexcept { *this = NumberSet(); }
  /// Numbers beyond kEnd are ignored.
  void add(std::uint32_t number) noexcept {
    if (number < kEnd) words_[number / 64] |= std::uint64_t{1} << (number % 64);
  }
  [[nodiscard]] bool has(std::uint32_t number) const noexcept {
    return number < kEnd && (words_[number / 64] >> (number % 64) & 1) != 0;
  }
  [[nodiscard]] std::uint32_t count() const noexcept;
  /// The lowest number from `from` on; kEnd if there is none.
  [[nodiscard]] std::uint32_t next(std::uint32_t from) const noexcept;

  /// Takes the kernel's text; false, and an empty set, for any other.
  [[nodiscard]] bool parse(const char* text) noexcept;

 private:
  std::uint64_t words_[kEnd / 64] = {};
};

}  // namespace verbatim::topo
