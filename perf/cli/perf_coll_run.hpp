// SPDX-License-Identifier: BSD-2-Clause
// All sizes of a collective, one after the other, by all ranks of a job. Main thread.
#pragma once

#include <cstdint>
#include <vector>

#include "perf/cli/perf_coll_options.hpp"

namespace verbatim::cli {

/// The sizes, and what is known of so many ranks before anything is measured. Throws Failure.
[[nodiscard]] std::vector<std::uint64_t> check_coll(const CollOptions& options, int ranks);

/// By each rank, between MPI_Init and MPI_Finalize; rank 0 reports. Returns the exit status: 1 where
/// a result was wrong.
[[nodiscard]] int measure_coll(const CollOptions& options, int rank, int ranks);

}  // namespace verbatim::cli
