// SPDX-License-Identifier: BSD-2-Clause
// What `verbatim perf pattern` prints and writes: a table, row by row as sizes are measured, and
// records. Every rank has one and calls it at the same time, since what all ranks found is brought
// together by MPI; rank 0 prints and writes. Main thread.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perf/cli/perf_options.hpp"
#include "perf/cli/perf_record_files.hpp"
#include "perf/cli/perf_run_floors.hpp"
#include "perf/support/noise.hpp"

namespace verbatim::cli {

/// What one rank has of a block; of one that sends nothing all is 0.
struct PatternFigures {
  std::uint64_t bytes = 0;
  std::uint64_t messages = 0;
  double seconds = 0;
  perf::Usage used;
};

class PatternReport {
 public:
  /// Rank 0 opens the files that the options name; throws Failure.
  PatternReport(const std::string& pattern, const PerfOptions& options, int rank, int ranks);

  /// At rank 0: what all that follows is held against.
  void set_floors(std::optional<PerfRunFloors> floors);
  void heading(const char* device, ibv_mtu mtu);
  /// All blocks of a size. In each, of all: their bytes in the time of the slowest; of each that
  /// sends: its own. Printed and written at once; throws Failure.
  void row(std::uint32_t size, const std::vector<PatternFigures>& own);
  /// Ends the table with the floors of the run behind it, and closes the files; throws Failure.
  void finish();

 private:
  struct Found;
  void add_records(std::uint32_t size, const Found& found);
  double floor_spread() const;

  const PerfOptions& options_;
  const int rank_, ranks_;
  const std::string pattern_;
  /// What is written to the standard output is to be read by programs.
  const bool prints_;
  std::string device_;
  std::optional<RecordFiles> files_;  // of rank 0
  std::vector<perf::Record> records_;
  std::optional<PerfRunFloors> floors_;
  std::vector<perf::Record> slowest_;  // of each size, for the lines of the floors
};

}  // namespace verbatim::cli
