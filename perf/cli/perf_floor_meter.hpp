// SPDX-License-Identifier: BSD-2-Clause
// Measures floors between two processes that are started for it, pinned, and gone again within a
// tenth of a second: the test itself has the cores for itself. Main thread.
//
// Where this program is linked without what measures, as tests link its parts, there is none.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "perf/cli/perf_floor_plan.hpp"
#include "perf/cli/stop_signals.hpp"
#include "perf/support/affinity.hpp"
#include "perf/support/blocks.hpp"

namespace verbatim::cli {

/// What a floor was at one time: blocks of each of its ways, or why there are none.
struct PerfFloorTaken {
  std::vector<perf::Blocks> ways;
  std::size_t disturbed = 0;  // blocks of them in which others had a core
  std::string missing;
};

/// One for each floor, in turn with the others. Nothing is thrown for what cannot be measured, since
/// the test can do without; a pending signal is Stopped.
[[gnu::weak]] std::vector<PerfFloorTaken> measure_floors(std::span<const PerfFloor> floors,
                                                         const perf::CorePair& cores,
                                                         const StopSignals& stop);

}  // namespace verbatim::cli
