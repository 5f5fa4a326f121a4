// SPDX-License-Identifier: BSD-2-Clause
// Starts this program once more, in the role of a measuring process (run_if_end).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "perf/support/process.hpp"

namespace verbatim::perf {

/// `role`: near, far, hub or peer. `fabric`: the folder in which the library instances of those that
/// are started with the same one find each other. `fds`: ours, and the number there.
Child start_end(const char* role, int cpu, const std::string& fabric,
                const std::vector<std::pair<int, int>>& fds);

}  // namespace verbatim::perf
