// SPDX-License-Identifier: BSD-2-Clause
// The commands that measure with two processes of this program, or read what was measured. They are
// apart from the other parts, which tests link without what measures. Main thread.
#pragma once

#include <span>

#include "perf/cli/commands.hpp"

namespace verbatim::cli {

/// Behind those of main.cpp.
std::span<const Command> measuring_commands();
/// The exit status, when this process was started as an end of a measurement; else -1.
int run_if_measuring_end(int argc, char** argv);

int perf_floors(Calling calling, int argc, char** argv);
int perf_scaling(Calling calling, int argc, char** argv);
int perf_gate(Calling calling, int argc, char** argv);
int perf_report(Calling calling, int argc, char** argv);

}  // namespace verbatim::cli
