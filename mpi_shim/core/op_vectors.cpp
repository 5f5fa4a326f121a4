// SPDX-License-Identifier: BSD-2-Clause
// What the processor has. It is asked by the instruction itself: the compiler's own way brings a
// constructor along, which would run at load.
#include "mpi_shim/core/op_kernels.hpp"

#ifdef VMPI_HAS_VECTORS
#include <cpuid.h>
#endif

namespace vmpi {

constinit Vectors vectors = Vectors::kPlain;

#ifdef VMPI_HAS_VECTORS
namespace {

/// Registers whose contents the kernel keeps for us (Intel SDM 13.3: XCR0).
std::uint32_t kept_registers() noexcept {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

}  // namespace

Vectors widest_vectors() noexcept {
  constexpr std::uint32_t kKept256 = 0x06;
  constexpr std::uint32_t kKept512 = 0xe6;
  constexpr std::uint32_t kXsave = 1u << 27;
  constexpr std::uint32_t kAvx2 = 1u << 5;
  // Foundation, doublewords and quadwords, bytes and words, shorter vectors.
  constexpr std::uint32_t kAvx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t c = 0;
  std::uint32_t d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kXsave) == 0) return Vectors::kPlain;
  const std::uint32_t kept = kept_registers();
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (b & kAvx2) == 0 ||
      (kept & kKept256) != kKept256)
    return Vectors::kPlain;
  return (b & kAvx512) == kAvx512 && (kept & kKept512) == kKept512 ? Vectors::k512 : Vectors::k256;
}
#else
Vectors widest_vectors() noexcept { return Vectors::kPlain; }
#endif

}  // namespace vmpi
