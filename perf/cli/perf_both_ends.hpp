// SPDX-License-Identifier: BSD-2-Clause
// Both ends of a `verbatim perf` test on this host, started here: as two processes, or as two
// threads of one. Each is bound to a core of its own, near the other's where the machine says so.
//
// Main thread, before anything of the library is open. The client's end prints; the server's is
// quiet. Nobody but the two is spoken to: they meet over 127.0.0.1, at a port of the kernel's
// choice.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "perf/cli/perf_options.hpp"
#include "perf/cli/stop_signals.hpp"
#include "perf/cli/tcp_exchange.hpp"
#include "runtime/topo/machine.hpp"

namespace verbatim::cli {

/// Where a client of both ends finds its server.
inline constexpr const char* kOwnHost = "127.0.0.1";

using PerfEnd =
    std::function<void(const PerfOptions&, std::optional<Listener>, const StopSignals&)>;

/// `run_end` runs one end to its end, by exceptions where that is no good one. Throws Failure, with
/// an empty line where the other end has said what happened, or Stopped.
void run_both_ends(PerfOptions server, PerfOptions client, const StopSignals& stop,
                   const PerfEnd& run_end);

/// Two of the processors `allowed`, on two cores that share a cache if there are such, else that
/// share a node, else on two cores, else any two; nothing when there are no two.
std::optional<std::pair<int, int>> near_processors(const topo::Machine& machine,
                                                   const std::vector<int>& allowed);

}  // namespace verbatim::cli
