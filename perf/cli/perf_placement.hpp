// SPDX-License-Identifier: BSD-2-Clause
// Where a `verbatim perf` program runs. Main thread, before anything is allocated: memory comes from
// the node of who touches it first.
#pragma once

#include "perf/cli/perf_options.hpp"

namespace verbatim::cli {

/// Binds this process to the cores of --pin_cores or --numa_node; throws Failure.
void place(const PerfOptions& options);

}  // namespace verbatim::cli
