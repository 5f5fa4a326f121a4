// SPDX-License-Identifier: BSD-2-Clause
#include "perf/figures/run.hpp"

#include <algorithm>

#include "perf/figures/mpi_rows.hpp"
#include "perf/support/clock.hpp"
#include "perf/support/interrupt.hpp"
#include "perf/support/scratch_folder.hpp"

namespace verbatim::perf {
namespace {

// A median of fewer is no median. The time bound goes below it only when the whole of it is used
// up.
constexpr int kFewestRounds = 5;

}  // namespace

Run::Run(const RunOptions& options, std::deque<Group> groups, std::string provider)
    : options_(options),
      provider_(std::move(provider)),
      start_(now_ns()),
      groups_(std::move(groups)),
      order_(options.seed) {
  using Form = RecordFile::Form;
  if (!options.jsonl.empty()) lines_ = RecordFile(options.jsonl, Form::kJsonLines, "--jsonl");
  if (!options.csv.empty()) table_ = RecordFile(options.csv, Form::kCsv, "--csv");
  facts_.processor = processor_name();
  facts_.cores = choose_core_pair(allowed_cpus());
  if (options.near_cpu >= 0) {
    facts_.cores = {options.near_cpu, options.far_cpu, options.near_cpu != options.far_cpu,
                    "as asked"};
  }
  facts_.block_ms = options.block_us / 1000.0;
  facts_.rounds = static_cast<std::size_t>(options.rounds);
  about_ = about_this_run(provider_, "measured between CPU " + std::to_string(facts_.cores.near) +
                                         " and CPU " + std::to_string(facts_.cores.far) + ", " +
                                         facts_.cores.note);
  about_.seed = options.seed;
}

double Run::seconds() const { return static_cast<double>(now_ns() - start_) / 1e9; }

int Run::measure() {
  int status = 0;
  try {
    const ScratchFolder fabric;
    Pair pair(facts_.cores, fabric.path());
    measure_all(pair, fabric.path());
  } catch (const Interrupted& interrupted) {
    status = 128 + interrupted.signal;
    facts_.interrupted = true;
  }
  conclude();
  const std::vector<Record> all = records();
  if (all.empty()) return status;
  if (lines_) lines_.write(all);
  if (table_) table_.write(all);
  return status;
}

void Run::measure_all(Pair& pair, const std::string& fabric) {
  if (!provider_.empty()) pair.run({.kind = Kind::kConnect}, "connect");
  for (std::size_t i = 0; i < groups_.size(); ++i) measure_group(pair, fabric, i);
}

void Run::measure_group(Pair& pair, const std::string& fabric, std::size_t index) {
  Group& group = groups_[index];
  const double parts = static_cast<double>(groups_.size());
  const double bound = options_.seconds * static_cast<double>(index + 1) / parts;
  std::vector<Cell*> cells;
  bool has_mpi = false;
  for (Cell& cell : group.cells) {
    has_mpi |= cell.section == Section::kMpi;
    if (cell.section == Section::kMpi || cell.unavailable) continue;
    cells.push_back(&cell);
    progress_.show(static_cast<double>(index) / parts, cell.name);
    calibrate(pair, cell, facts_.block_ms);
  }
  for (int round = 0; round < options_.rounds; ++round) {
    const bool late = seconds() > bound;
    if ((round >= kFewestRounds && late) || (round > 0 && seconds() > options_.seconds)) {
      facts_.rounds = std::min(facts_.rounds, static_cast<std::size_t>(round));
      break;
    }
    const double part = static_cast<double>(round) / options_.rounds;
    progress_.show((static_cast<double>(index) + part) / parts, group.name);
    // Another order each time: who comes behind whom is to make no difference.
    std::shuffle(cells.begin(), cells.end(), order_);
    for (Cell* cell : cells) perf::measure(pair, *cell, late ? 1 : kAttempts);
    if (has_mpi) measure_mpi(group, facts_.block_ms, facts_.cores, fabric);
  }
  const auto ask = [&pair](const Request& request, const std::string& what) {
    return pair.run(request, what);
  };
  for (Cell* cell : cells) {
    if (group.is_shown(*cell)) count_system_calls(ask, *cell);
  }
}

void Run::conclude() {
  progress_.clear();
  facts_.seconds = seconds();
  about_.noise = watch_.noise();
  double waited = 0, elapsed = 0;
  for (const Group& group : groups_) {
    for (const Cell& cell : group.cells) {
      facts_.retaken += cell.retaken;
      facts_.disturbed += cell.disturbed;
      waited += cell.waited_ns;
      elapsed += cell.elapsed_ns;
    }
    const Cell* floor = group.best_variant("f1");
    if (floor != nullptr) about_.noise.floor_spread = floor->blocks.spread();
  }
  // What counts is what the two ends waited for in the blocks that were kept.
  if (elapsed > 0) about_.noise.waited = waited / elapsed / 2;
  facts_.unreliable = about_.noise.unreliable();
}

std::vector<Record> Run::records() const {
  std::vector<Record> all;
  for (const Group& group : groups_) add_records(group, about_, all);
  return all;
}

}  // namespace verbatim::perf
