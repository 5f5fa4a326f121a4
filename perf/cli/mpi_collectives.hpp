// SPDX-License-Identifier: BSD-2-Clause
// What commands of the tool share that speak of MPI's collectives.
#pragma once

#include "mpi_shim/coll/select.hpp"

namespace verbatim::cli {

/// By its name on the command line, or a Failure that lists the names.
[[nodiscard]] vmpi::Collective collective_named(const char* program, const char* name);

}  // namespace verbatim::cli
