// SPDX-License-Identifier: BSD-2-Clause
// What `verbatim perf coll` prints and writes, by rank 0: a table, row by row as sizes are measured,
// and records. Main thread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perf/cli/perf_coll_measure.hpp"
#include "perf/cli/perf_coll_options.hpp"
#include "perf/cli/perf_record_files.hpp"
#include "perf/cli/perf_run_floors.hpp"

namespace verbatim::cli {

class CollReport {
 public:
  /// Opens the files of --jsonl and --csv; throws Failure.
  CollReport(const CollOptions& options, int ranks);

  /// What all that follows is held against.
  void set_floors(std::optional<PerfRunFloors> floors);
  void heading(bool is_one_host);
  /// Printed and written at once: nothing of it is lost when the run is interrupted. Throws Failure.
  void row(const CollFigures& figures);
  /// The floors of the run behind the table; closes the files; throws Failure.
  void finish();

 private:
  [[nodiscard]] std::string name() const;
  perf::Record& add_record(const char* what, const char* unit, const CollFigures& figures,
                           const perf::Blocks& blocks, bool has_calls);
  /// Against the floors, which a collective is held to by itself.
  void hold(perf::Record& record);
  [[nodiscard]] double floor_spread() const;

  const CollOptions& options_;
  const int ranks_;
  const bool prints_;
  RecordFiles files_;
  std::vector<perf::Record> records_;  ///< of a size
  std::optional<PerfRunFloors> floors_;
  std::vector<perf::Record> held_;  ///< of all sizes, for the lines of the floors
};

}  // namespace verbatim::cli
