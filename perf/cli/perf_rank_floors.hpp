// SPDX-License-Identifier: BSD-2-Clause
// The floors in the report of a command whose ranks measure together: those of the cores of rank 0
// and of one of its partners, taken by rank 0 while all others sleep. Main thread of each rank.
#pragma once

#include <optional>

#include "perf/cli/perf_floor_plan.hpp"
#include "perf/cli/perf_run_floors.hpp"

namespace verbatim::cli {

/// By all ranks at once; `partner` is another rank that rank 0 has to do with. At rank 0: the floors
/// as they were right before what is measured next, or why there are none (the ranks are of several
/// hosts, or too few); at the others nothing.
[[nodiscard]] std::optional<PerfRunFloors> take_rank_floors(PerfHeld held, PerfFloorPlan plan,
                                                            int partner);

}  // namespace verbatim::cli
