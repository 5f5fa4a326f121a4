// SPDX-License-Identifier: BSD-2-Clause
// The floors of one run of a test: taken right before it and, where this host has both ends, right
// behind it, on the cores of its ends. They are lines behind the report that begin with '#',
// members of --out_json, and records; the records of the test get their ratios from here.
//
// Main thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "perf/cli/perf_floor_meter.hpp"
#include "perf/cli/perf_floor_plan.hpp"
#include "perf/support/json.hpp"
#include "perf/support/noise.hpp"
#include "perf/support/record.hpp"

namespace verbatim::cli {

/// What is held against floors.
struct PerfHeld {
  std::string kind;           // of its records
  bool is_time = true;        // in ns, printed in us; else GB/s
  bool gbits = false;         // bandwidths are printed in Gbit/s
  bool has_both_ends = true;  // on this host
  std::string note;           // the last of the lines: how the ratio is to be read
};

class PerfRunFloors {
 public:
  /// `cores` are those of the client and of the server.
  PerfRunFloors(const PerfOptions& options, PerfFloorPlan plan, perf::CorePair cores);
  PerfRunFloors(PerfHeld held, PerfFloorPlan plan, perf::CorePair cores);

  /// Whether this program can measure any.
  static bool possible() { return measure_floors != nullptr; }

  /// The blocks before the test, or, called again, those behind it. Throws Stopped.
  void take(const StopSignals& stop);
  /// As take(), of what a test would measure: for who knows the figures.
  void add(std::vector<PerfFloorTaken> taken);
  /// As take(), where none can be measured.
  void lack(const std::string& why);

  /// Gives a record of the test its reference and its ratios. Each block is held against the blocks
  /// of the floor that were taken nearer to it, since the machine drifts.
  void hold(perf::Record* record) const;
  /// Of the floors themselves, without who measured them.
  std::vector<perf::Record> records() const;
  /// Of the floor that says how quiet the machine was: part of its median, NaN where none is there.
  double spread() const;

  /// `tested`: the records of the test, behind hold(); `noise` till now.
  /// Behind them a line on what makes the run no ground for a claim, if anything does.
  void print(const std::vector<perf::Record>& tested, perf::Noise noise) const;
  perf::Json json(const std::vector<perf::Record>& tested) const;

 private:
  /// What a floor was, by the best of its ways.
  struct Figure {
    perf::Blocks before, behind, all;
    std::string missing;
    bool disturbed = false;  // most of it, of all its ways
  };
  /// A line beside a result, which may be missing.
  struct Row {
    const PerfFloorsOfSize* of;
    const PerfFloor* floor;
    Figure figure;
    bool is_limit;  // the one that the records' ratio is to
    perf::Blocks tested, ratio;
  };

  Figure figure_of(std::size_t floor) const;
  const PerfFloorsOfSize* floors_of(const perf::Record& record) const;
  std::optional<std::size_t> limit_of(const PerfFloorsOfSize& size) const;
  std::vector<Row> rows(const std::vector<perf::Record>& tested) const;
  /// Why there is none at all; empty: there are some.
  std::string missing() const;
  std::string title() const;
  double in_units(double value) const;
  void print_rows(const std::vector<perf::Record>& tested) const;

  PerfHeld held_;
  PerfFloorPlan plan_;
  perf::CorePair cores_;
  std::vector<std::vector<PerfFloorTaken>> times_;
};

}  // namespace verbatim::cli
