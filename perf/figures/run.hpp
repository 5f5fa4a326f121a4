// SPDX-License-Identifier: BSD-2-Clause
// One run of a plan: two measuring ends are asked for one block after another, group by group and
// round by round. What supervises only sleeps. Main thread; once per process.
#pragma once

#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "perf/figures/options.hpp"
#include "perf/figures/report.hpp"
#include "perf/support/noise.hpp"
#include "perf/support/progress.hpp"
#include "perf/support/record.hpp"

namespace verbatim::perf {

class Run {
 public:
  /// `provider`: whose endpoint the ends connect first; empty: none is needed.
  Run(const RunOptions& options, std::deque<Group> groups, std::string provider);

  /// All of it, and the files that the options name. 0, or 128 and the number of the signal that
  /// stopped it: what was measured till then is there. Throws for anything that fails.
  int measure();

  const RunFacts& facts() const { return facts_; }
  const std::deque<Group>& groups() const { return groups_; }
  std::vector<Record> records() const;

 private:
  double seconds() const;
  void measure_all(Pair& pair, const std::string& fabric);
  void measure_group(Pair& pair, const std::string& fabric, std::size_t index);
  void conclude();

  RunOptions options_;
  std::string provider_;
  std::uint64_t start_;
  NoiseWatch watch_;
  RunFacts facts_;
  RunAbout about_;
  std::deque<Group> groups_;
  std::mt19937_64 order_;
  Progress progress_;
  RecordFile lines_, table_;
};

/// Of what a group measured, in the order of the plan; of variants the best. `about` is every
/// record's.
void add_records(const Group& group, const RunAbout& about, std::vector<Record>& records);

}  // namespace verbatim::perf
