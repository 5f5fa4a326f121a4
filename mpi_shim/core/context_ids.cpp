// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/context_ids.hpp"

#include <bit>
#include <cstring>

#include "mpi_shim/core/array.hpp"

namespace vmpi {
namespace {

constinit std::uint64_t free_bits[kContextWords] = {};
constinit std::uint32_t given_out = 0;
constinit bool are_offered = false;
/// By its process to this one, too.
constinit LastingArray<std::uint32_t> given_back;

/// 1 | rank in MPI_COMM_WORLD | number, from 1 | 2 bits of 0
[[nodiscard]] int bits_of_number(int world_size) noexcept {
  return 29 - static_cast<int>(std::bit_width(static_cast<unsigned>(world_size - 1)));
}

}  // namespace

void reset_contexts() noexcept {
  given_out = 0;
  are_offered = false;
  given_back = {};
  std::memset(free_bits, 0xff, sizeof(free_bits));
  free_bits[0] &= ~std::uint64_t{7};  // 0 is none; 4 and 8 are those of the world and of self
}

const std::uint64_t* free_contexts() noexcept { return free_bits; }

void offer_contexts(bool are_now) noexcept { are_offered = are_now; }

bool are_contexts_offered() noexcept { return are_offered; }

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

void remember_given_back(std::uint32_t context) noexcept {
  // Without memory its messages are kept.
  if ((context & kContextToCome) != 0 && context != kContextToCome)
    (void)given_back.push_back(context);
}

bool is_context_over(std::uint32_t context) noexcept {
  // A new communicator has one of these only after this process has offered it.
  if ((context & kContextToCome) == 0) return !are_offered;
  for (const std::uint32_t each : given_back)
    if (each == context) return true;
  return false;
}

std::uint32_t give_out_context(int world_rank, int world_size) noexcept {
  const int bits = bits_of_number(world_size);
  if (bits < 1 || given_out + 1 == std::uint32_t{1} << bits) return 0;
  return kContextToCome | static_cast<std::uint32_t>(world_rank) << (bits + 2) | ++given_out << 2;
}

bool is_context_of(std::uint32_t context, int world_rank, int world_size) noexcept {
  const int bits = bits_of_number(world_size);
  const std::uint32_t number = context >> 2 & ((std::uint32_t{1} << bits) - 1);
  return number != 0 &&
         context ==
             (kContextToCome | static_cast<std::uint32_t>(world_rank) << (bits + 2) | number << 2);
}

}  // namespace vmpi
