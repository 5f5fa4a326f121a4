// SPDX-License-Identifier: BSD-2-Clause
// Floating and complex numbers. Which of two numbers a minimum takes when one is no number is not
// said by the standard; here it is the one that lay in the result.
#include "mpi_shim/core/op_kernels.hpp"

namespace vmpi {
namespace {

template <class T>
struct Sum {
  static T of(T a, T b) noexcept { return a + b; }
};
template <class T>
struct Product {
  static T of(T a, T b) noexcept { return a * b; }
};
template <class T>
struct Min {
  static T of(T a, T b) noexcept { return a < b ? a : b; }
};
template <class T>
struct Max {
  static T of(T a, T b) noexcept { return a > b ? a : b; }
};

template <class T>
Kernel find(Operation operation) noexcept {
  switch (operation) {
    case Operation::kSum:
      return vector_kernel<T, Sum<T>>();
    case Operation::kProduct:
      return vector_kernel<T, Product<T>>();
    case Operation::kMin:
      return vector_kernel<T, Min<T>>();
    case Operation::kMax:
      return vector_kernel<T, Max<T>>();
    default:
      return nullptr;
  }
}

template <class T>
void add_complex(const void* in, void* inout, std::int64_t count) noexcept {
  vector_kernel<T, Sum<T>>()(in, inout, 2 * count);
}

template <class T>
void multiply_complex(const void* in, void* inout, std::int64_t count) noexcept {
  const T* __restrict__ const a = static_cast<const T*>(in);
  T* __restrict__ const b = static_cast<T*>(inout);
  for (std::int64_t i = 0; i < 2 * count; i += 2) {
    const T real = a[i] * b[i] - a[i + 1] * b[i + 1];
    const T imaginary = a[i] * b[i + 1] + a[i + 1] * b[i];
    b[i] = real;
    b[i + 1] = imaginary;
  }
}

template <class T>
Kernel find_complex(Operation operation) noexcept {
  switch (operation) {
    case Operation::kSum:
      return add_complex<T>;
    case Operation::kProduct:
      return multiply_complex<T>;
    default:
      return nullptr;
  }
}

// Numbers of MPI_REAL16 and MPI_COMPLEX32: their size does not tell them from those of long double.
constexpr std::uint16_t kReal16 = 0x2e2;
constexpr std::uint16_t kComplex32 = 0x2eb;

}  // namespace

Kernel find_floating_kernel(Operation operation, const Basic& basic) noexcept {
#ifdef VMPI_HAS_QUAD
  if (basic.number == kReal16) return find<Quad>(operation);
#else
  if (basic.number == kReal16 && __LDBL_MANT_DIG__ != 113) return nullptr;
#endif
  switch (basic.bytes) {
    case sizeof(float):
      return find<float>(operation);
    case sizeof(double):
      return find<double>(operation);
    case sizeof(long double):
      return find<long double>(operation);
    default:
      return nullptr;
  }
}

Kernel find_complex_kernel(Operation operation, const Basic& basic) noexcept {
#ifdef VMPI_HAS_QUAD
  if (basic.number == kComplex32) return find_complex<Quad>(operation);
#else
  if (basic.number == kComplex32 && __LDBL_MANT_DIG__ != 113) return nullptr;
#endif
  switch (basic.bytes) {
    case 2 * sizeof(float):
      return find_complex<float>(operation);
    case 2 * sizeof(double):
      return find_complex<double>(operation);
    case 2 * sizeof(long double):
      return find_complex<long double>(operation);
    default:
      return nullptr;
  }
}

}  // namespace vmpi
