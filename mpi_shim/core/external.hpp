// SPDX-License-Identifier: BSD-2-Clause
// "external32": numbers of fixed sizes, big end first (MPI 5.0 section 14.5.2).
#pragma once

#include <cstdint>

#include "mpi_shim/core/datatype.hpp"

namespace vmpi {

/// Bytes of `count` elements. -1: more than 2^63.
[[nodiscard]] std::int64_t external_size(const Datatype& type, std::int64_t count) noexcept;
/// MPI_SUCCESS; MPI_ERR_CONVERSION: a number does not fit, or there is no such format here.
[[nodiscard]] int pack_external(const Datatype& type, std::int64_t count, const void* buffer,
                                void* out) noexcept;
[[nodiscard]] int unpack_external(const Datatype& type, std::int64_t count, void* buffer,
                                  const void* in) noexcept;

}  // namespace vmpi
