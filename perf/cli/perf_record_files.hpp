// SPDX-License-Identifier: BSD-2-Clause
// The files of --jsonl and --csv of a command that measures, and the noise meanwhile. Main thread.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "perf/support/noise.hpp"
#include "perf/support/record.hpp"

namespace verbatim::cli {

class RecordFiles {
 public:
  /// Opens those that are named; throws Failure.
  RecordFiles(const std::optional<std::string>& jsonl, const std::optional<std::string>& csv);

  [[nodiscard]] bool wanted() const {
    return static_cast<bool>(lines_) || static_cast<bool>(table_);
  }
  /// What has used the cores till now, as those who measure floors have, is no noise.
  void watch_anew() { watch_ = {}; }
  /// Since the files were opened, or since then.
  [[nodiscard]] perf::Noise noise() const { return watch_.noise(); }
  /// All records, with who measured them, and closes; throws Failure. `floor_spread`: of a floor of
  /// the run.
  void write(std::vector<perf::Record>& records, const std::string& provider, std::uint64_t seed,
             double floor_spread = std::numeric_limits<double>::quiet_NaN());
  /// Some of them, behind the ones before, so that they are there however the program ends.
  void append(std::vector<perf::Record>& records, const std::string& provider, std::uint64_t seed,
              double floor_spread = std::numeric_limits<double>::quiet_NaN());
  void close();

 private:
  perf::NoiseWatch watch_;
  perf::RecordFile lines_, table_;
};

}  // namespace verbatim::cli
