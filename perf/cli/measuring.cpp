// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/measuring.hpp"

#include <array>

#include "perf/ends/end.hpp"

namespace verbatim::cli {
namespace {

constexpr std::array kMeasuring = {
    Command{"", "perf", "floors", perf_floors},
    Command{"", "perf", "gate", perf_gate},
    Command{"", "perf", "report", perf_report},
    Command{"", "perf", "scaling", perf_scaling},
};

}  // namespace

std::span<const Command> measuring_commands() { return kMeasuring; }

int run_if_measuring_end(int argc, char** argv) { return perf::run_if_end(argc, argv); }

}  // namespace verbatim::cli
