// SPDX-License-Identifier: BSD-2-Clause
// Sums and products of 64 bits that remember whether one of them did not fit.
#pragma once

#include <cstdint>

namespace vmpi {

class Checked {
 public:
  [[nodiscard]] std::int64_t sum(std::int64_t a, std::int64_t b) noexcept {
    std::int64_t out = 0;
    if (__builtin_add_overflow(a, b, &out)) overflowed_ = true;
    return out;
  }
  [[nodiscard]] std::int64_t difference(std::int64_t a, std::int64_t b) noexcept {
    std::int64_t out = 0;
    if (__builtin_sub_overflow(a, b, &out)) overflowed_ = true;
    return out;
  }
  [[nodiscard]] std::int64_t product(std::int64_t a, std::int64_t b) noexcept {
    std::int64_t out = 0;
    if (__builtin_mul_overflow(a, b, &out)) overflowed_ = true;
    return out;
  }
  [[nodiscard]] bool overflowed() const noexcept { return overflowed_; }

 private:
  bool overflowed_ = false;
};

}  // namespace vmpi
