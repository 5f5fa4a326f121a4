// SPDX-License-Identifier: BSD-2-Clause
// What `verbatim perf` prints: perftest's lines, which scripts read, and the files of --out_json,
// --jsonl and --csv.
//
// Main thread. The file holds one JSON object, whose results are a list with one for each size; it
// is opened before anything is measured, so that one that cannot be written is known in time.
#pragma once

#include <cstdint>
#include <cstdio>
#include <vector>

#include "perf/cli/file_handle.hpp"
#include "perf/cli/perf_counters.hpp"
#include "perf/cli/perf_exchange.hpp"
#include "perf/cli/perf_figures.hpp"
#include "perf/cli/perf_options.hpp"
#include "perf/cli/perf_queues.hpp"
#include "perf/cli/perf_records.hpp"
#include "perf/cli/perf_run.hpp"
#include "perf/support/json.hpp"

namespace verbatim::cli {

class PerfPrinter {
 public:
  /// `use` is asked at each result. Throws Failure when the file of --out_json cannot be opened.
  PerfPrinter(const PerfOptions& options, const ProcessorUse& use);

  void waiting() const;
  void heading(const Device& device, const PerfQueues& queues, const PerfTerms& terms);
  void address(const char* whose, const PerftestAddress& address, bool with_gid) const;
  void columns() const;
  void latency(std::uint32_t size, PerfLatencies found);
  /// `ours` and, of both directions, what the peer has.
  void bandwidth(const PerftestReport& ours, const PerftestReport* theirs = nullptr);
  /// The directions of the last result, each by itself.
  void both(const PerftestReport& ours, const PerftestReport& theirs) const;
  void line() const;
  /// For the records alone: a bandwidth with its blocks, and one that this end was told.
  void measured(std::uint32_t size, const PerfThroughput& found) {
    records_.bandwidth(size, found);
  }
  void told(const PerftestReport& theirs) { records_.told(theirs); }
  bool has_results() const { return has_results_; }
  /// Behind all results: what the floors of the run were, and what the results are beside them.
  void floors(const PerfRunFloors& floors);
  /// Writes the files; throws Failure.
  void finish();

 private:
  bool full() const { return options_.output == PerfOutput::kAll && !options_.quiet; }
  void samples(const std::vector<double>& all, const char* unit) const;
  void latency_of_duration(std::uint32_t size, const PerfLatencies& found, double factor);
  void bandwidth_columns() const;
  void bandwidth_row(const PerftestReport& report) const;
  /// Ends a line of columns, or of their values.
  void end_columns() const { std::puts(options_.processor_use ? "    CPU_Util[%]" : ""); }
  void end_row() const;
  void add_result(perf::Json result);

  const PerfOptions& options_;
  const ProcessorUse& use_;
  perf::Json about_;
  perf::Json results_ = perf::Json::array();
  bool has_results_ = false;
  FileHandle file_;
  PerfRecords records_;
};

/// In the units that the options ask for.
PerftestReport report_of(const PerfOptions& options, std::uint32_t size,
                         const PerfThroughput& found);
/// Throws Failure when -w or -y asks for more.
void check_limits(const PerfOptions& options, double average, double rate);

}  // namespace verbatim::cli
