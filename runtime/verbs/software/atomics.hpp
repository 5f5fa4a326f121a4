// SPDX-License-Identifier: BSD-2-Clause
// Fetch and add, compare and swap (IBTA 9.4.5), as the processor's own: atomic also towards other
// processes that use the memory, and the application. Any thread.
#pragma once

#include <cstdint>

namespace verbatim {

/// Performs one on the aligned word at `at`, and says what it found there.
inline std::uint64_t perform_atomic(std::uint64_t* at, bool compare_and_swap,
                                    std::uint64_t compare_add, std::uint64_t swap) noexcept {
  if (!compare_and_swap) return __atomic_fetch_add(at, compare_add, __ATOMIC_SEQ_CST);
  std::uint64_t expected = compare_add;
  __atomic_compare_exchange_n(at, &expected, swap, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}

}  // namespace verbatim
