// SPDX-License-Identifier: BSD-2-Clause
// The types and operations of verbatim/coll.h, as the engine calls them.
#pragma once

#include <mpi.h>
#include <verbatim/coll.h>

namespace vmpi {

/// MPI_DATATYPE_NULL, MPI_OP_NULL: there is none of this number.
[[nodiscard]] MPI_Datatype handle_of(vbt_coll_type type) noexcept;
[[nodiscard]] MPI_Op handle_of(vbt_coll_op op) noexcept;

}  // namespace vmpi
