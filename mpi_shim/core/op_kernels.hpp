// SPDX-License-Identifier: BSD-2-Clause
// The loops of the predefined reductions, a file for each kind of number. Loops are plain, so that
// compilers make vector code of them; the arrays do not overlap. On x86-64 there is one of each for
// vectors of 16, 32 and 64 bytes, of which MPI_Init chooses; elsewhere all processors have the same.
// Those of 64 are for what has no instruction of 32: all else is as fast as memory with 32.
// Elements are computed alike by each: nothing is summed across a vector, or fused.
#pragma once

#include <cstdint>

#include "mpi_shim/core/datatype_predefined.hpp"

namespace vmpi {

/// In the order of the handles' numbers where they follow each other.
enum class Operation : std::uint8_t {
  kSum,
  kMin,
  kMax,
  kProduct,
  kBitAnd,
  kBitOr,
  kBitXor,
  kAnd,
  kOr,
  kXor,
  kMinLocation,
  kMaxLocation,
  kNone,
};

/// inout[i] = in[i] op inout[i].
using Kernel = void (*)(const void* in, void* inout, std::int64_t count);

// Null: not defined on it.
[[nodiscard]] Kernel find_integer_kernel(Operation operation, const Basic& basic) noexcept;
[[nodiscard]] Kernel find_floating_kernel(Operation operation, const Basic& basic) noexcept;
[[nodiscard]] Kernel find_complex_kernel(Operation operation, const Basic& basic) noexcept;
[[nodiscard]] Kernel find_logical_kernel(Operation operation, const Basic& basic) noexcept;
[[nodiscard]] Kernel find_pair_kernel(Operation operation, const Basic& basic) noexcept;

#if defined(__x86_64__) && defined(__ELF__)
#define VMPI_HAS_VECTORS 1
#define VMPI_WITH_512 "avx512f,avx512dq,avx512bw,avx512vl"
// Both compilers would keep to shorter ones.
#ifdef __clang__
#define VMPI_512 gnu::target(VMPI_WITH_512), clang::min_vector_width(512)
#else
#define VMPI_512 gnu::target(VMPI_WITH_512 ",prefer-vector-width=512")
#endif
#endif

enum class Vectors : std::uint8_t { kPlain, k256, k512 };
/// Those that are used: set by MPI_Init, and by tests.
extern Vectors vectors;
/// What this processor has.
[[nodiscard]] Vectors widest_vectors() noexcept;

template <class T, class Combine>
void combine_all(const void* in, void* inout, std::int64_t count) noexcept {
  const T* __restrict__ const a = static_cast<const T*>(in);
  T* __restrict__ const b = static_cast<T*>(inout);
  for (std::int64_t i = 0; i < count; ++i) b[i] = Combine::of(a[i], b[i]);
}

#ifdef VMPI_HAS_VECTORS
template <class T, class Combine>
[[gnu::target("avx2")]] void combine_all_256(const void* in, void* inout,
                                             std::int64_t count) noexcept {
  const T* __restrict__ const a = static_cast<const T*>(in);
  T* __restrict__ const b = static_cast<T*>(inout);
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < count; ++i) b[i] = Combine::of(a[i], b[i]);
}
template <class T, class Combine>
[[VMPI_512]] void combine_all_512(const void* in, void* inout, std::int64_t count) noexcept {
  const T* __restrict__ const a = static_cast<const T*>(in);
  T* __restrict__ const b = static_cast<T*>(inout);
  for (std::int64_t i = 0; i < count; ++i) b[i] = Combine::of(a[i], b[i]);
}
#endif

/// Of numbers that vectors hold.
template <class T, class Combine>
[[nodiscard]] Kernel vector_kernel() noexcept {
#ifdef VMPI_HAS_VECTORS
  if constexpr (sizeof(T) <= 8) {
    if constexpr (requires { Combine::kIsFasterWith512; })
      if (vectors == Vectors::k512) return combine_all_512<T, Combine>;
    if (vectors != Vectors::kPlain) return combine_all_256<T, Combine>;
  }
#endif
  return combine_all<T, Combine>;
}

#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 Quad;
#define VMPI_HAS_QUAD 1
#endif
#ifdef __SIZEOF_INT128__
__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UnsignedWide;
#define VMPI_HAS_WIDE 1
#endif

}  // namespace vmpi
