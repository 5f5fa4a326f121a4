// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_record_files.hpp"

#include <stdexcept>

#include "perf/cli/failure.hpp"

namespace verbatim::cli {

RecordFiles::RecordFiles(const std::optional<std::string>& jsonl,
                         const std::optional<std::string>& csv) {
  using Form = perf::RecordFile::Form;
  try {
    if (jsonl) lines_ = perf::RecordFile(*jsonl, Form::kJsonLines, "--jsonl");
    if (csv) table_ = perf::RecordFile(*csv, Form::kCsv, "--csv");
  } catch (const std::runtime_error& wrong) {
    fail("%s", wrong.what());
  }
}

void RecordFiles::append(std::vector<perf::Record>& records, const std::string& provider,
                         std::uint64_t seed, double floor_spread) {
  if (!wanted()) return;
  perf::RunAbout about = perf::about_this_run(provider, "");
  about.seed = seed;
  about.noise = watch_.noise();
  about.noise.floor_spread = floor_spread;
  for (perf::Record& one : records) one.about = about;
  try {
    if (lines_) lines_.append(records);
    if (table_) table_.append(records);
  } catch (const std::runtime_error& wrong) {
    fail("%s", wrong.what());
  }
}

void RecordFiles::close() {
  try {
    lines_.close();
    table_.close();
  } catch (const std::runtime_error& wrong) {
    fail("%s", wrong.what());
  }
}

void RecordFiles::write(std::vector<perf::Record>& records, const std::string& provider,
                        std::uint64_t seed, double floor_spread) {
  append(records, provider, seed, floor_spread);
  close();
}

}  // namespace verbatim::cli
