// SPDX-License-Identifier: BSD-2-Clause
// Memory that ends where it ends: between pages that cannot be touched, with a pattern that shows
// what was written.
#pragma once

#include <cstdint>

namespace verbatim::fuzz {

class GuardedMemory {
 public:
  explicit GuardedMemory(std::uint64_t bytes);
  unsigned char* at(std::uint64_t offset) { return base_ + offset; }
  std::uint64_t bytes() const { return bytes_; }
  void fill();
  /// Still as fill() left it?
  bool untouched(std::uint64_t from, std::uint64_t to) const;

 private:
  unsigned char* base_;
  std::uint64_t bytes_;
};

}  // namespace verbatim::fuzz
