// SPDX-License-Identifier: BSD-2-Clause
// The main job. This process only supervises: it starts the two measuring ends (this same program
// in another role), asks them for one block after another, and sleeps meanwhile. Ctrl-C, an error
// or the end of a run ends both and removes the private rendezvous folder.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>

#include "perf/ends/end.hpp"
#include "perf/ends/pair.hpp"
#include "perf/figures/mpi_rows.hpp"
#include "perf/figures/options.hpp"
#include "perf/figures/plan.hpp"
#include "perf/figures/report.hpp"
#include "perf/support/clock.hpp"
#include "perf/support/interrupt.hpp"
#include "perf/support/progress.hpp"
#include "perf/support/scratch_folder.hpp"

namespace verbatim::perf {
namespace {

// A median of fewer is no median. The time bound goes below it only when the whole of it is used
// up.
constexpr int kFewestRounds = 5;

class Run {
 public:
  explicit Run(const RunOptions& options) : options_(options), start_(now_ns()) {
    facts_.processor = processor_name();
    facts_.cores = choose_core_pair(allowed_cpus());
    if (options.near_cpu >= 0) {
      facts_.cores = {options.near_cpu, options.far_cpu, options.near_cpu != options.far_cpu,
                      "as asked"};
    }
    facts_.block_ms = options.block_us / 1000.0;
    groups_ = make_plan({options.sizes, options.floors_only});
  }

  void measure_all(Pair& pair, const std::string& fabric) {
    if (!options_.floors_only) pair.run({.kind = Kind::kConnect}, "connect");
    facts_.rounds = static_cast<std::size_t>(options_.rounds);
    for (std::size_t i = 0; i < groups_.size(); ++i) measure_group(pair, fabric, i);
    progress_.clear();
    facts_.seconds = seconds();
    for (const Group& group : groups_) {
      for (const Cell& cell : group.cells) {
        facts_.retaken += cell.retaken;
        facts_.disturbed += cell.disturbed;
      }
    }
  }

  void print() const {
    if (options_.json) {
      print_json(stdout, facts_, groups_);
    } else {
      print_tables(stdout, facts_, groups_);
    }
  }

  const CorePair& cores() const { return facts_.cores; }

 private:
  double seconds() const { return static_cast<double>(now_ns() - start_) / 1e9; }

  void measure_group(Pair& pair, const std::string& fabric, std::size_t index) {
    Group& group = groups_[index];
    const double parts = static_cast<double>(groups_.size());
    const double bound = options_.seconds * static_cast<double>(index + 1) / parts;
    for (Cell& cell : group.cells) {
      if (cell.section == Section::kMpi) continue;
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
      bool has_mpi = false;
      for (Cell& cell : group.cells) {
        if (cell.section == Section::kMpi)
          has_mpi = true;
        else
          measure(pair, cell, late ? 1 : kAttempts);
      }
      if (has_mpi) measure_mpi(group, facts_.block_ms, facts_.cores, fabric);
    }
  }

  RunOptions options_;
  std::uint64_t start_;
  RunFacts facts_;
  std::deque<Group> groups_;
  Progress progress_;
};

int supervise(const RunOptions& options) {
  catch_interrupts();
  try {
    Run run(options);
    {
      ScratchFolder fabric;
      Pair pair(run.cores(), fabric.path());
      run.measure_all(pair, fabric.path());
    }
    run.print();
    return 0;
  } catch (const Interrupted& interrupted) {
    return 128 + interrupted.signal;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "verbatim_perf: %s\n", failure.what());
    return 1;
  }
}

}  // namespace
}  // namespace verbatim::perf

int main(int argc, char** argv) {
  using namespace verbatim::perf;
  const int as_end = run_if_end(argc, argv);
  if (as_end >= 0) return as_end;
  std::string error;
  const auto options = parse_run_options({argv + 1, argv + argc}, error);
  if (!options) {
    std::fprintf(stderr, "verbatim_perf: %s\n%s", error.c_str(), kRunUsage);
    return 2;
  }
  if (options->help) {
    std::fputs(kRunUsage, stdout);
    return 0;
  }
  return supervise(*options);
}
