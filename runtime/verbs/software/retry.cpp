// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/verbs/software/retry.hpp"

namespace verbatim {

// IBTA table 45: the 32 codes of the RNR timer in units of 10 us.
std::uint64_t rnr_timer_ns(std::uint32_t code) noexcept {
  static constexpr std::uint32_t kTens[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                              16,    24,   32,   48,    64,    96,    128,   192,
                                              256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                              4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return std::uint64_t{kTens[code & 31u]} * 10'000;
}

}  // namespace verbatim
