// SPDX-License-Identifier: BSD-2-Clause
// What `verbatim perf coll` prints and writes, by rank 0: a table, row by row as sizes are measured,
// and records. Main thread.
#pragma once

#include <string>
#include <vector>

#include "perf/cli/perf_coll_measure.hpp"
#include "perf/cli/perf_coll_options.hpp"
#include "perf/cli/perf_record_files.hpp"

namespace verbatim::cli {

class CollReport {
 public:
  /// Opens the files of --jsonl and --csv; throws Failure.
  CollReport(const CollOptions& options, int ranks);

  void heading(bool is_one_host);
  /// Printed and written at once: nothing of it is lost when the run is interrupted. Throws Failure.
  void row(const CollFigures& figures);
  /// Closes the files; throws Failure.
  void finish();

 private:
  [[nodiscard]] std::string name() const;
  void add_record(const char* what, const char* unit, const CollFigures& figures,
                  const perf::Blocks& blocks, bool has_calls);

  const CollOptions& options_;
  const int ranks_;
  const bool prints_;
  RecordFiles files_;
  std::vector<perf::Record> records_;  ///< of a size
};

}  // namespace verbatim::cli
