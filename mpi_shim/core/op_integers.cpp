// SPDX-License-Identifier: BSD-2-Clause
// Integers and bytes. Sums and products wrap, so those of signed numbers are those of unsigned ones.
#include "mpi_shim/core/op_kernels.hpp"

namespace vmpi {
namespace {

template <class T>
struct Sum {
  // Times an unsigned: small numbers would be multiplied as int, which does not wrap.
  static T of(T a, T b) noexcept { return static_cast<T>(1u * a + b); }
};
template <class T>
struct Product;
/// Numbers of 64 bits are multiplied by one instruction of AVX-512, by many of those before.
template <class T>
requires(sizeof(T) == 8) struct Product<T> {
  static constexpr bool kIsFasterWith512 = true;
  static T of(T a, T b) noexcept { return a * b; }
};
template <class T>
requires(sizeof(T) != 8) struct Product<T> {
  static T of(T a, T b) noexcept { return static_cast<T>(1u * a * b); }
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
struct BitAnd {
  static T of(T a, T b) noexcept { return static_cast<T>(a & b); }
};
template <class T>
struct BitOr {
  static T of(T a, T b) noexcept { return static_cast<T>(a | b); }
};
template <class T>
struct BitXor {
  static T of(T a, T b) noexcept { return static_cast<T>(a ^ b); }
};
template <class T>
struct And {
  static T of(T a, T b) noexcept { return static_cast<T>((a != 0) & (b != 0)); }
};
template <class T>
struct Or {
  static T of(T a, T b) noexcept { return static_cast<T>((a | b) != 0); }
};
template <class T>
struct Xor {
  static T of(T a, T b) noexcept { return static_cast<T>((a != 0) != (b != 0)); }
};

template <class Signed, class Unsigned>
Kernel find(Operation operation, BasicClass type_class) noexcept {
  using enum Operation;
  const bool is_signed = type_class == BasicClass::kSigned;
  switch (operation) {
    case kSum:
      return vector_kernel<Unsigned, Sum<Unsigned>>();
    case kProduct:
      return vector_kernel<Unsigned, Product<Unsigned>>();
    case kMin:
      return is_signed ? vector_kernel<Signed, Min<Signed>>()
                       : vector_kernel<Unsigned, Min<Unsigned>>();
    case kMax:
      return is_signed ? vector_kernel<Signed, Max<Signed>>()
                       : vector_kernel<Unsigned, Max<Unsigned>>();
    case kBitAnd:
      return vector_kernel<Unsigned, BitAnd<Unsigned>>();
    case kBitOr:
      return vector_kernel<Unsigned, BitOr<Unsigned>>();
    case kBitXor:
      return vector_kernel<Unsigned, BitXor<Unsigned>>();
    case kAnd:
      return vector_kernel<Unsigned, And<Unsigned>>();
    case kOr:
      return vector_kernel<Unsigned, Or<Unsigned>>();
    case kXor:
      return vector_kernel<Unsigned, Xor<Unsigned>>();
    default:
      return nullptr;
  }
}

template <class T>
Kernel find_logical(Operation operation) noexcept {
  switch (operation) {
    case Operation::kAnd:
      return vector_kernel<T, And<T>>();
    case Operation::kOr:
      return vector_kernel<T, Or<T>>();
    case Operation::kXor:
      return vector_kernel<T, Xor<T>>();
    default:
      return nullptr;
  }
}

}  // namespace

Kernel find_integer_kernel(Operation operation, const Basic& basic) noexcept {
  const bool is_bitwise = operation == Operation::kBitAnd || operation == Operation::kBitOr ||
                          operation == Operation::kBitXor;
  if (basic.type_class == BasicClass::kBytes && (!is_bitwise || basic.number != 0x247))
    return nullptr;  // of MPI_BYTE, which 0x247 is, bits alone; of MPI_PACKED nothing
  switch (basic.bytes) {
    case 1:
      return find<std::int8_t, std::uint8_t>(operation, basic.type_class);
    case 2:
      return find<std::int16_t, std::uint16_t>(operation, basic.type_class);
    case 4:
      return find<std::int32_t, std::uint32_t>(operation, basic.type_class);
    case 8:
      return find<std::int64_t, std::uint64_t>(operation, basic.type_class);
#ifdef VMPI_HAS_WIDE
    case 16:
      return find<Wide, UnsignedWide>(operation, basic.type_class);
#endif
    default:
      return nullptr;
  }
}

// What is not zero is true; results are 1 and 0, as gfortran and C have them.
Kernel find_logical_kernel(Operation operation, const Basic& basic) noexcept {
  switch (basic.bytes) {
    case 1:
      return find_logical<std::uint8_t>(operation);
    case 2:
      return find_logical<std::uint16_t>(operation);
    case 4:
      return find_logical<std::uint32_t>(operation);
    case 8:
      return find_logical<std::uint64_t>(operation);
#ifdef VMPI_HAS_WIDE
    case 16:
      return find_logical<UnsignedWide>(operation);
#endif
    default:
      return nullptr;
  }
}

}  // namespace vmpi
