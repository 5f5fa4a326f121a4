// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/coll/slices.hpp"

namespace vmpi {

Typed Slices::operator[](int rank) const noexcept {
  const auto i = static_cast<std::size_t>(rank);
  // By numbers: the buffer may be MPI_BOTTOM, of which no pointer is reckoned.
  const auto at = [this](std::int64_t offset) noexcept {
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(buffer) +
                                   static_cast<std::uintptr_t>(offset));
  };
  switch (form) {
    case Form::kAlike:
      return {at(rank * count * one_type->extent), count, one_type};
    case Form::kElements:
      return {at(displacements[i] * one_type->extent), counts[i], one_type};
    case Form::kTypes:
      return {at(long_displacements != nullptr ? long_displacements[i] : displacements[i]),
              counts[i], types[i]};
    case Form::kPacked:
      return {at(offsets[i]), offsets[i + 1] - offsets[i], &byte_type()};
  }
  return {};
}

}  // namespace vmpi
