// SPDX-License-Identifier: BSD-2-Clause
// `verbatim perf floors`: what no message on this machine can undercut, F1 to F13.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "perf/cli/measuring.hpp"
#include "perf/figures/plan.hpp"
#include "perf/figures/run.hpp"
#include "perf/support/interrupt.hpp"

namespace verbatim::cli {
namespace {

constexpr const char* kFloorsUsage =
    "usage: verbatim perf floors [options]\n"
    "The limits of this machine that every figure is held against, F1 to F13, measured between "
    "two\n"
    "processes that are pinned to two cores; what cannot be measured here is listed with the "
    "reason.\n"
    "  --quick          few rounds: a look, not a claim (2 s)\n"
    "  --rounds N       blocks of each floor, taken in turn (9)\n"
    "  --block-us N     length of a block in microseconds (2000)\n"
    "  --seconds N      bound of the whole run, rounds give way (30)\n"
    "  --cpus A,B       the two CPUs\n"
    "  --seed N         of the order in which floors are taken in turn (1)\n"
    "  --json           one JSON object instead of the table\n"
    "  --jsonl FILE     records too, one JSON object a line; - is the standard output\n"
    "  --csv FILE       records as CSV\n";

/// The options of the main job but those that choose what it measures.
std::vector<std::string> with_own_defaults(int argc, char** argv) {
  std::vector<std::string> words = {"--rounds", "9", "--seconds", "30"};
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--quick") words.clear();
  }
  words.insert(words.end(), argv + 1, argv + argc);
  return words;
}

int measure_floors(const perf::RunOptions& options) {
  perf::catch_interrupts();
  try {
    perf::Run run(options, perf::make_floor_plan(), "");
    const int status = run.measure();
    const std::vector<perf::Record> records = run.records();
    const bool printed = options.jsonl == "-" || options.csv == "-";
    if (printed || (status != 0 && records.empty())) return status;
    if (options.json) {
      std::fputs(perf::json_object("verbatim-floors-1", records).c_str(), stdout);
    } else {
      perf::print_floor_table(stdout, run.facts(), run.groups());
    }
    return status;
  } catch (const perf::Interrupted& interrupted) {
    return 128 + interrupted.signal;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "verbatim perf floors: %s\n", failure.what());
    return 1;
  }
}

}  // namespace

int perf_floors(Calling, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word != "--sizes" && word != "--floors") continue;
    std::fprintf(stderr, "verbatim perf floors: unknown option %s\n%s", argv[i], kFloorsUsage);
    return 1;
  }
  std::string error;
  const auto options = perf::parse_run_options(with_own_defaults(argc, argv), error);
  if (!options) {
    std::fprintf(stderr, "verbatim perf floors: %s\n%s", error.c_str(), kFloorsUsage);
    return 1;
  }
  if (options->help) {
    std::fputs(kFloorsUsage, stdout);
    return 0;
  }
  return measure_floors(*options);
}

}  // namespace verbatim::cli
