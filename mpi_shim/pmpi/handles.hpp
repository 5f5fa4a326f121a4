// SPDX-License-Identifier: BSD-2-Clause
// The predefined types and operations of the MPI underneath, by their handles. Any thread, once
// find_library() is through.
#pragma once

#include <verbatim/coll.h>

#include <cstdint>

#include "mpi_shim/pmpi/library.hpp"

namespace vmpi::pmpi {

struct PredefinedType {
  std::uint32_t bytes;       ///< of an element
  vbt_coll_type type;        ///< as which it is reduced; 0: only moved
  std::uint32_t operations;  ///< that are defined on it, 1 << vbt_coll_op each
};

/// Null: it is derived, or none that is known here.
[[nodiscard]] const PredefinedType* find_type(Handle type) noexcept;
/// 0: the program's own, or one that is not done here.
[[nodiscard]] vbt_coll_op find_operation(Handle operation) noexcept;

/// Handles for this library's own calls.
[[nodiscard]] Handle handle_of_byte() noexcept;
[[nodiscard]] Handle handle_of_uint64() noexcept;
[[nodiscard]] Handle handle_of_sum() noexcept;
[[nodiscard]] Handle handle_of_max() noexcept;

/// False: they are not there.
[[nodiscard, gnu::cold]] bool find_handles(const Library& library) noexcept;

}  // namespace vmpi::pmpi
