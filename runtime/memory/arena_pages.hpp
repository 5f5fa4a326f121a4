// SPDX-License-Identifier: BSD-2-Clause
//
// Which pages of a packed arena are in use, by which allocation, and how many registrations cover
// each. Not thread-safe: the arena table's locks hold it.
#pragma once

#include <cstdint>

namespace verbatim {

inline constexpr std::uint32_t kPackedArenaPages = 1024;

class ArenaPages {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  explicit ArenaPages(std::uint32_t pages) noexcept : pages_(pages) {}

  [[nodiscard]] bool empty() const noexcept { return used_ == 0; }

  /// Takes `count` adjacent pages and returns the first, or kNone.
  [[nodiscard]] std::uint32_t take(std::uint32_t count) noexcept {
    if (count == 0 || count > pages_ - used_) return kNone;
    std::uint32_t free_pages = 0;
    for (std::uint32_t page = 0; page < pages_; ++page) {
      free_pages = in_use_[page] ? 0 : free_pages + 1;
      if (free_pages < count) continue;
      const std::uint32_t first = page + 1 - count;
      for (std::uint32_t i = first; i <= page; ++i) in_use_[i] = true;
      allocation_[first] = static_cast<std::uint16_t>(count);
      used_ += count;
      return first;
    }
    return kNone;
  }

  /// Pages of the allocation that starts at `first`, 0 when none does.
  [[nodiscard]] std::uint32_t allocated_at(std::uint32_t first) const noexcept {
    return first < pages_ ? allocation_[first] : 0;
  }

  /// REQUIRES: allocated_at(first) != 0.
  void give(std::uint32_t first) noexcept {
    const std::uint32_t count = allocation_[first];
    for (std::uint32_t i = first; i < first + count; ++i) in_use_[i] = false;
    allocation_[first] = 0;
    used_ -= count;
  }

  /// All pages of [first, last] belong to allocations.
  [[nodiscard]] bool all_in_use(std::uint32_t first, std::uint32_t last) const noexcept {
    for (std::uint32_t i = first; i <= last; ++i) {
      if (!in_use_[i]) return false;
    }
    return true;
  }
  void hold(std::uint32_t first, std::uint32_t last) noexcept {
    for (std::uint32_t i = first; i <= last; ++i) ++holds_[i];
  }
  void drop(std::uint32_t first, std::uint32_t last) noexcept {
    for (std::uint32_t i = first; i <= last; ++i) holds_[i] -= holds_[i] != 0;
  }
  /// Whether a registration covers any page of the allocation at `first`.
  [[nodiscard]] bool held(std::uint32_t first) const noexcept {
    for (std::uint32_t i = first; i < first + allocation_[first]; ++i) {
      if (holds_[i] != 0) return true;
    }
    return false;
  }

 private:
  std::uint32_t pages_;
  std::uint32_t used_ = 0;
  bool in_use_[kPackedArenaPages] = {};
  std::uint16_t allocation_[kPackedArenaPages] = {};  ///< length, at the first page
  std::uint32_t holds_[kPackedArenaPages] = {};
};

}  // namespace verbatim
