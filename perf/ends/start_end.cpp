// SPDX-License-Identifier: BSD-2-Clause
#include "perf/ends/start_end.hpp"

#include <unistd.h>

namespace verbatim::perf {

Child start_end(const char* role, int cpu, const std::string& fabric,
                const std::vector<std::pair<int, int>>& fds) {
  SpawnOptions options;
  options.fds = fds;
  // What the library keeps for the user's other processes goes with the run, too.
  options.environment = {"VERBATIM_FABRIC=" + fabric, "XDG_RUNTIME_DIR=" + fabric};
  options.hold_interrupts = true;
  return Child({own_path(), "--end", role, std::to_string(cpu), std::to_string(getpid())}, options);
}

}  // namespace verbatim::perf
