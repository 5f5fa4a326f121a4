// SPDX-License-Identifier: BSD-2-Clause
#include "tests/fuzz/guarded_memory.hpp"

#include <sys/mman.h>

#include "tests/fuzz/input.hpp"

namespace verbatim::fuzz {
namespace {

constexpr unsigned char kFill = 0xc5;

}  // namespace

GuardedMemory::GuardedMemory(std::uint64_t bytes) : bytes_(bytes) {
  constexpr std::uint64_t kGuard = 1u << 20;
  void* const all = mmap(nullptr, bytes + 2 * kGuard, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  VBT_HOLDS(all != MAP_FAILED);
  base_ = static_cast<unsigned char*>(all) + kGuard;
  VBT_HOLDS(mprotect(base_, bytes, PROT_READ | PROT_WRITE) == 0);
  fill();
}

void GuardedMemory::fill() { std::memset(base_, kFill, bytes_); }

bool GuardedMemory::untouched(std::uint64_t from, std::uint64_t to) const {
  // Equal to its own neighbour all the way, and the first byte as filled.
  return from == to ||
         (base_[from] == kFill && std::memcmp(base_ + from, base_ + from + 1, to - from - 1) == 0);
}

}  // namespace verbatim::fuzz
