// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/context_ids.hpp"

#include <cstring>

namespace vmpi {
namespace {

constinit std::uint64_t free_bits[kContextWords] = {};

}  // namespace

void reset_contexts() noexcept {
  std::memset(free_bits, 0xff, sizeof(free_bits));
  free_bits[0] &= ~std::uint64_t{7};  // 0 is none; 4 and 8 are those of the world and of self
}

const std::uint64_t* free_contexts() noexcept { return free_bits; }

std::uint32_t take_lowest_context(const std::uint64_t* common) noexcept {
  for (std::size_t i = 0; i < kContextWords; ++i) {
    const std::uint64_t left = common[i] & free_bits[i];
    if (left == 0) continue;
    const auto bit = static_cast<std::uint32_t>(__builtin_ctzll(left));
    free_bits[i] &= ~(std::uint64_t{1} << bit);
    return 4 * (static_cast<std::uint32_t>(i) * 64 + bit);
  }
  return 0;
}

void give_context_back(std::uint32_t context) noexcept {
  const std::size_t number = context / 4;
  if (number < kContextWords * 64) free_bits[number / 64] |= std::uint64_t{1} << (number % 64);
}

}  // namespace vmpi
