// SPDX-License-Identifier: BSD-2-Clause
// The predefined types: what each is made of, which decides its size, its alignment, the reductions
// that are defined on it and its form in external32.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "mpi_shim/core/datatype.hpp"

namespace vmpi {

/// Rows of the standard's tables of what a reduction is defined on (MPI 5.0 section 6.9.2).
enum class BasicClass : std::uint8_t {
  kBytes,      ///< MPI_BYTE, MPI_PACKED
  kCharacter,  ///< no number: MPI_WCHAR, MPI_CHARACTER
  kSigned,     ///< integers of C and Fortran, and MPI_AINT and its like
  kUnsigned,
  kLogical,  ///< bool of C and C++, LOGICAL of Fortran
  kFloating,
  kComplex,
  kPair,  ///< of MPI_MINLOC and MPI_MAXLOC
};

struct Basic {
  std::uint16_t number;  ///< of the handle; 0: there is none here
  BasicClass type_class;
  std::uint8_t bytes;      ///< of the data; of a pair, of the value
  std::uint8_t alignment;  ///< of a pair, of the value
  std::uint8_t external;   ///< bytes in external32; of a pair, of the value
  std::uint8_t index_at;   ///< of a pair: where the index lies
  std::uint8_t index_bytes;
  std::uint16_t value;  ///< numbers of the handles of a pair's parts
  std::uint16_t index;
  const char* name;
};

/// Null: no such type.
[[nodiscard]] const Basic* find_basic(std::uint32_t number) noexcept;
[[nodiscard]] std::int64_t size_of_basic(std::uint32_t number) noexcept;
[[nodiscard]] Datatype* find_predefined_type(std::uint32_t number) noexcept;
void drop_predefined_types() noexcept;

/// visit(basic) for each.
using BasicVisitor = void (*)(const Basic& basic, void* context);
void each_basic(BasicVisitor visit, void* context) noexcept;

}  // namespace vmpi
