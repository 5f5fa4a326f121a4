// SPDX-License-Identifier: BSD-2-Clause
// Running perf/mpi/figures.c, compiled with one of the MPI libraries and started by that library's launcher, and reading what
// it prints. The launchers bind, or leave unbound, alike.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "perf/support/affinity.hpp"

namespace verbatim::perf {

enum class MpiLibrary { kVerbatim, kOpenMpi, kMpich };

inline constexpr std::array kMpiPeers = {MpiLibrary::kOpenMpi, MpiLibrary::kMpich};

const char* name_of(MpiLibrary library);
/// Empty, or what is to be installed or built before it can be measured here.
std::string missing_for(MpiLibrary library);

struct MpiJob {
  int ranks = 2;
  /// Each rank on a core of its own; else all of them share our two cores as the kernel likes, and what the library offers for
  /// such ranks is asked for.
  bool bound = true;
  std::vector<std::string> arguments;     // of the program
  std::vector<std::string> before = {};   // the launcher: what starts it
  std::vector<std::string> options = {};  // of the launcher, beyond its own
  std::vector<std::string> environment = {};
};

/// A line of the program.
struct MpiFigure {
  std::string name;
  std::uint64_t with = 0;  // bytes, receives, ranks
  double median = 0;       // ns of a message, or KiB
  double least = 0;
  int disturbed = 0;  // of the blocks
  int blocks = 0;
};

struct MpiRun {
  std::vector<MpiFigure> figures;
  double ms = 0;  // from before the launcher's start to its end
};

/// What is no figure is passed over: launchers have their own to say.
std::vector<MpiFigure> parse_mpi_figures(const std::string& text);

/// Runs it to its end, with what is left of it in `folder`. Throws std::runtime_error with the end of its output when it fails,
/// Interrupted on Ctrl-C; no rank stays then.
MpiRun run_mpi(MpiLibrary library, const MpiJob& job, const CorePair& cores,
               const std::string& folder);

}  // namespace verbatim::perf
