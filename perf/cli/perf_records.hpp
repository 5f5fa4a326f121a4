// SPDX-License-Identifier: BSD-2-Clause
// The records of `verbatim perf <test>`: what its lines say, with blocks, distribution, processor
// time and noise, for --jsonl and --csv. Main thread.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "perf/cli/perf_exchange.hpp"
#include "perf/cli/perf_options.hpp"
#include "perf/cli/perf_record_files.hpp"
#include "perf/cli/perf_run.hpp"
#include "perf/cli/perf_run_floors.hpp"
#include "perf/support/noise.hpp"
#include "perf/support/record.hpp"

namespace verbatim::cli {

class PerfRecords {
 public:
  /// Opens the files of --jsonl and --csv; throws Failure.
  explicit PerfRecords(const PerfOptions& options);

  void set_device(const char* name) { provider_ = name; }
  void latency(std::uint32_t size, const PerfLatencies& found);
  void bandwidth(std::uint32_t size, const PerfThroughput& found);
  /// Held against the floors of the run, whose own records go behind them.
  void hold(const PerfRunFloors& floors);
  const std::vector<perf::Record>& all() const { return records_; }
  perf::Noise noise() const;
  /// Of an end that only was told.
  void told(const PerftestReport& theirs);
  /// Writes the files; throws Failure.
  void finish();

 private:
  bool wanted() const { return files_.wanted() || options_.floors; }
  perf::Record record(const char* kind, const char* unit, std::uint64_t size) const;

  const PerfOptions& options_;
  std::string provider_;
  RecordFiles files_;
  std::vector<perf::Record> records_;
  double floor_spread_ = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace verbatim::cli
