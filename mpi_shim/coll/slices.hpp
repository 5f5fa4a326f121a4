// SPDX-License-Identifier: BSD-2-Clause
// How collectives name data: `Typed` is one buffer, `Slices` one for each rank, in the forms that
// the plain, the v and the w functions give them.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "mpi_shim/core/datatype.hpp"

namespace vmpi {

[[nodiscard]] inline Datatype& byte_type() noexcept { return *find_datatype(MPI_BYTE); }

struct Typed {
  void* buffer = nullptr;  ///< or MPI_IN_PLACE
  std::int64_t count = 0;
  Datatype* type = nullptr;

  [[nodiscard]] bool is_in_place() const noexcept { return buffer == MPI_IN_PLACE; }
  [[nodiscard]] std::int64_t bytes() const noexcept { return count * type->size; }
};

struct Slices {
  enum class Form : std::uint8_t {
    kAlike,     ///< `count` elements each, one after the other
    kElements,  ///< counts[i], displacements[i] extents from the buffer
    kTypes,     ///< counts[i] of types[i], displacements[i] bytes from the buffer
    kPacked,    ///< bytes from offsets[i] up to offsets[i + 1]
  };

  Form form = Form::kAlike;
  void* buffer = nullptr;
  std::int64_t count = 0;
  Datatype* one_type = nullptr;
  const int* counts = nullptr;
  const int* displacements = nullptr;
  const MPI_Aint* long_displacements = nullptr;  ///< of kTypes, in the place of the others
  Datatype* const* types = nullptr;
  const std::int64_t* offsets = nullptr;

  [[nodiscard]] Typed operator[](int rank) const noexcept;
  [[nodiscard]] std::int64_t bytes(int rank) const noexcept { return (*this)[rank].bytes(); }
};

/// From one to the other within this process, as a message would.
inline void copy(const Typed& from, const Typed& to) noexcept {
  (void)copy_typed(*from.type, from.count, from.buffer, *to.type, to.count, to.buffer);
}

}  // namespace vmpi
