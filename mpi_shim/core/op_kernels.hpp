// SPDX-License-Identifier: BSD-2-Clause
// The loops of the predefined reductions, a file for each kind of number. Loops are plain, so that
// compilers make vector code of them; the arrays do not overlap.
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

template <class T, class Combine>
void combine_all(const void* in, void* inout, std::int64_t count) noexcept {
  const T* __restrict__ const a = static_cast<const T*>(in);
  T* __restrict__ const b = static_cast<T*>(inout);
  for (std::int64_t i = 0; i < count; ++i) b[i] = Combine::of(a[i], b[i]);
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
