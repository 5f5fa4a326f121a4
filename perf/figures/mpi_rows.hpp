// SPDX-License-Identifier: BSD-2-Clause
// MPI beside the verbs that it is made of: messages of perf/mpi/figures.c, started by `verbatim run`, and in turn with it SENDs of
// as many bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perf/figures/cell.hpp"
#include "perf/support/affinity.hpp"

namespace verbatim::perf {

/// The SENDs are cells as others, that Pair measures; those of Section::kMpi are measured together, by one job.
Group mpi_group(const std::vector<std::uint64_t>& sizes);

/// One more block of each cell of Section::kMpi. Throws as run_mpi; without the programs the cells are unavailable.
void measure_mpi(Group& group, double block_ms, const CorePair& cores, const std::string& folder);

}  // namespace verbatim::perf
