// SPDX-License-Identifier: BSD-2-Clause
// Reduction operations.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "mpi_shim/core/datatype.hpp"

namespace vmpi {

struct Op {
  std::uint32_t handle = 0;
  std::int32_t references = 1;
  bool is_predefined = false;
  bool is_freed = false;  ///< by the program: operations under way keep it
  bool is_commutative = true;
  MPI_User_function* function = nullptr;      ///< the program's; null: predefined
  MPI_User_function_c* function_c = nullptr;  ///< of MPI_Op_create_c
};

/// They need no memory; found before MPI_Init too.
[[nodiscard]] bool make_predefined_ops() noexcept;
/// Null: no memory.
[[nodiscard]] Op* new_op() noexcept;
/// MPI_Finalize.
void drop_ops() noexcept;
[[nodiscard]] Op* find_op(MPI_Op handle) noexcept;
void retain(Op& op) noexcept;
void release(Op& op) noexcept;

/// "MPI_SUM", or "the program's operation".
[[nodiscard]] const char* name_of(const Op& op) noexcept;
/// Whether the operation is defined on the type (MPI 5.0 section 6.9.2; a program's on any).
[[nodiscard]] bool is_defined_on(const Op& op, const Datatype& type) noexcept;
/// inout[i] = in[i] op inout[i], on memory of the type's alignment.
using Combine = void(const void* in, void* inout, std::int64_t count);
/// Null: the program's operation, or one that is not defined on the type.
[[nodiscard]] Combine* combine_of(const Op& op, const Datatype& type) noexcept;
/// inout[i] = in[i] op inout[i]. REQUIRES: is_defined_on. A program's function is called with the
/// big lock given up.
void reduce(const Op& op, const Datatype& type, std::int64_t count, const void* in,
            void* inout) noexcept;

}  // namespace vmpi
