// SPDX-License-Identifier: BSD-2-Clause
// One measured figure with what is needed to judge it later: who measured it where, all its blocks,
// its distribution, the floor of the same run. Every program of perf/ writes these, as JSON Lines
// or CSV, and `verbatim perf gate` and `report` read them. Any thread; no state.
//
// A line of the file is one record and stands for itself: files may be joined, cut and sorted.
#pragma once

#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "perf/support/blocks.hpp"
#include "perf/support/histogram.hpp"
#include "perf/support/noise.hpp"

namespace verbatim::perf {

inline constexpr const char* kRecordSchema = "verbatim-record-1";

/// Where and by what a run was measured.
struct RunAbout {
  std::string host, kernel, processor, topology, build, provider, started;
  std::uint64_t seed = 0;  // of the order in which figures are taken in turn
  Noise noise;
};

/// Of this process, now; `cores` is said behind the machine's topology.
RunAbout about_this_run(const std::string& provider, const std::string& cores);

/// A level of a distribution, in the record's unit, and how many samples it has.
using Level = std::pair<double, std::uint64_t>;

/// What a figure is to reach, of a comparison with targets.
struct Target {
  std::string row;    // "R1"; empty: the figure is none of a comparison
  std::string sense;  // "at most", "at least"; empty: it is shown without one
  double value = std::numeric_limits<double>::quiet_NaN();
  std::string verdict;  // "pass", "short", "disturbed", "shown", "not measurable here"
  std::string detail;   // absolute numbers
  bool less_is_better = true;
};

struct Record {
  RunAbout about;
  std::string kind;   // floor, latency, rate, bandwidth, mpi, collective, scaling or compare
  std::string name;   // without what the curve runs over
  std::string floor;  // "F4", of floors
  std::string parameter = "size";  // what the curve runs over: size, qps, mrs, threads, peers
  std::uint64_t at = 0;
  std::string unit;     // of the blocks
  std::string missing;  // why it was not measured
  Blocks blocks;        // all of them, in their order
  std::vector<Level> levels;
  // What it is held against, of the same run.
  std::string reference;
  double reference_median = std::numeric_limits<double>::quiet_NaN();
  Blocks ratio;
  Target target;
  // Of one operation; NaN where nobody counted.
  double cpu_ns = std::numeric_limits<double>::quiet_NaN();
  double switches = std::numeric_limits<double>::quiet_NaN();
  double system_calls = std::numeric_limits<double>::quiet_NaN();

  bool measured() const { return missing.empty() && !blocks.empty(); }
  bool lower_is_better() const {
    return target.row.empty() ? unit == "ns" || unit == "us" || unit == "KiB"
                              : target.less_is_better;
  }
  /// Of a comparison: others had the cores for most of it, which is no ground for a claim.
  bool disturbed() const { return target.verdict == "disturbed"; }
  /// "write mapped, 4 KiB" or "empty poll, 1000 qps".
  std::string label() const;
  /// What is one figure in two runs.
  std::string key() const;
  double percentile(double fraction) const;
  std::uint64_t samples() const;
};

/// The levels of a histogram, each of whose units is `scale` of the record's.
std::vector<Level> levels_of(const Histogram& histogram, double scale);

std::string json_line(const Record& record);
/// One JSON object with all of them.
std::string json_object(const char* format, const std::vector<Record>& records);
std::string csv_heading();
std::string csv_line(const Record& record);

/// The records of a file, which may say anything; throws std::runtime_error that names the file and
/// the line.
std::vector<Record> read_records(const std::string& path);

/// A file of records that is opened before anything is measured, so that one that cannot be written
/// is known in time; what it held before is there until the first record is. "-" is the standard
/// output. Throws std::runtime_error.
class RecordFile {
 public:
  enum class Form { kJsonLines, kCsv };
  RecordFile() = default;
  RecordFile(const std::string& path, Form form, const char* option);
  explicit operator bool() const { return file_ != nullptr; }
  /// All of them, and closes.
  void write(const std::vector<Record>& records);
  /// These behind the ones before: they are there even if the program is killed.
  void append(const std::vector<Record>& records);
  void close();

 private:
  struct Close {
    void operator()(std::FILE* file) const;
  };
  void begin();
  [[noreturn]] void fail_writing(const char* what, int error) const;
  std::string path_, option_;
  Form form_ = Form::kJsonLines;
  bool has_begun_ = false;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace verbatim::perf
