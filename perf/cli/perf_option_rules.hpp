// SPDX-License-Identifier: BSD-2-Clause
// What follows from the options of `verbatim perf` together: defaults that depend on others, and
// contradictions.
//
// Main thread; pure. Derived first, then checked: a Failure names the options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "perf/cli/perf_options.hpp"

namespace verbatim::cli {

inline constexpr std::uint32_t kPerfReceives = 512;  // the default of perftest

/// What an option says that cannot be seen in PerfOptions any more.
struct PerfAsked {
  bool moderation = false;
  bool port = false;
  bool file_offset = false;
  std::string of_rate;  // how an option was called that says something of a limited rate
  std::optional<std::uint32_t> margin;
};

/// What perftest derives from what was given.
void derive_perf_options(PerfOptions* options, const PerfAsked& asked);
/// Refuses what contradicts itself.
void check_perf_options(const PerfOptions& options, const PerfAsked& asked);

}  // namespace verbatim::cli
