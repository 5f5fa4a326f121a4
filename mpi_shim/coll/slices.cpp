// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/coll/slices.hpp"

#include "mpi_shim/coll/collectives.hpp"

namespace vmpi {

Typed Slices::operator[](int rank) const noexcept {
  const auto i = static_cast<std::size_t>(rank);
  auto* const base = static_cast<unsigned char*>(buffer);
  switch (form) {
    case Form::kAlike:
      return {base + rank * count * one_type->extent, count, one_type};
    case Form::kElements:
      return {base + displacements[i] * one_type->extent, counts[i], one_type};
    case Form::kTypes:
      return {base + displacements[i], counts[i], types[i]};
    case Form::kPacked:
      return {base + offsets[i], offsets[i + 1] - offsets[i], &byte_type()};
  }
  return {};
}

}  // namespace vmpi
