// SPDX-License-Identifier: BSD-2-Clause
// The frame of a command that runs until it is done, gives up, or is stopped by a signal.
// Main thread.
#pragma once

#include <cstdio>
#include <optional>

#include "perf/cli/failure.hpp"
#include "perf/cli/stop_signals.hpp"

namespace verbatim::cli {

/// `parse` answers the exit status when there is nothing to run; `run` is given the signals to
/// watch. Both may throw Failure, whose line goes to stderr. Returns the exit status.
template <class Parse, class Run>
int run_stoppable(Parse parse, Run run) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // who watches through a pipe sees each line in time
  try {
    if (const std::optional<int> status = parse()) return *status;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.line.c_str());
    return failure.status;
  }
  const StopSignals stop;
  try {
    run(stop);
  } catch (const Failure& failure) {
    if (!failure.line.empty()) std::fprintf(stderr, "%s\n", failure.line.c_str());
    return failure.status;
  } catch (const Stopped&) {
    return 1;  // unseen: the signal acts as `stop` goes
  }
  return 0;
}

}  // namespace verbatim::cli
