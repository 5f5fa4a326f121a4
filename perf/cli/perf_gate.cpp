// SPDX-License-Identifier: BSD-2-Clause
// `verbatim perf gate base.jsonl new.jsonl`: exit status 3 when a figure of the new run is worse by
// more than the tolerance, and by more than its noise.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "perf/cli/measuring.hpp"
#include "perf/figures/comparison.hpp"
#include "perf/support/table.hpp"

namespace verbatim::cli {
namespace {

constexpr const char* kGateUsage =
    "usage: verbatim perf gate <base.jsonl> <new.jsonl> [--tolerance 5%] [--all] "
    "[--allow-missing]\n"
    "Compares two runs, figure by figure. A figure has become worse when its median is worse by\n"
    "more than the tolerance and its blocks differ by more than chance (Mann-Whitney, p < 0.01).\n"
    "  --tolerance P    percent, with or without % (5)\n"
    "  --all            print every figure, not only those that differ\n"
    "  --allow-missing  the new run need not have all figures of the base\n"
    "Exit status: 0 nothing has become worse; 3 something has; 4 nothing could be judged, since\n"
    "one of the runs is marked unreliable or has too few blocks, or no figure is in both; 5 the "
    "new run lacks figures of "
    "the\n"
    "base; 1 a file or an option is wrong.\n";

constexpr int kWorse = 3, kNotJudged = 4, kLost = 5;

struct GateOptions {
  std::vector<std::string> files;
  double tolerance = 0.05;
  bool all = false;
  bool allow_missing = false;
  bool help = false;
};

/// Empty, or what is wrong.
std::string parse_gate(int argc, char** argv, GateOptions* options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--help" || word == "-h") {
      options->help = true;
    } else if (word == "--all") {
      options->all = true;
    } else if (word == "--allow-missing") {
      options->allow_missing = true;
    } else if (word == "--tolerance" || word.starts_with("--tolerance=")) {
      const bool behind = word == "--tolerance";
      if (behind && i + 1 == argc) return "--tolerance needs a value";
      const std::string value = behind ? argv[++i] : std::string(word.substr(12));
      char* end = nullptr;
      const double percent = std::strtod(value.c_str(), &end);
      const std::string_view rest = end;
      if (end == value.c_str() || (!rest.empty() && rest != "%") || !(percent >= 0) ||
          percent > 1000) {
        return "tolerance '" + value + "' is not a percentage from 0 to 1000";
      }
      options->tolerance = percent / 100;
    } else if (word.size() > 1 && word.front() == '-') {
      return "unknown option " + std::string(word);
    } else {
      options->files.emplace_back(word);
    }
  }
  if (!options->help && options->files.size() != 2) return "give two files, the base and the new";
  return {};
}

int compare_runs(const GateOptions& options) {
  const auto base = perf::read_records(options.files[0]);
  const auto fresh = perf::read_records(options.files[1]);
  const perf::Comparison found = perf::compare(base, fresh, options.tolerance);
  perf::Table table({"<figure", "base", "new", "<unit", "change", "p", "<"});
  std::size_t worse = 0, judged = 0, shown = 0;
  for (const perf::Difference& one : found.figures) {
    judged += one.verdict != perf::Change::kNotJudged;
    worse += one.verdict == perf::Change::kWorse;
    if (!options.all && one.verdict == perf::Change::kSame) continue;
    if (!options.all && one.verdict == perf::Change::kNotJudged) continue;
    ++shown;
    char change[32];
    std::snprintf(change, sizeof change, "%+.1f %%", 100 * one.change);
    table.add({one.fresh.kind + ": " + one.fresh.label(),
               perf::number_text(one.base.blocks.median()),
               perf::number_text(one.fresh.blocks.median()), one.fresh.unit, change,
               perf::fixed_text(one.chance, 3), perf::name_of(one.verdict)});
  }
  if (shown != 0) table.print(stdout);
  for (const std::string& missing : found.missing) {
    std::printf("only in one of them: %s\n", missing.c_str());
  }
  if (!found.unreliable.empty()) {
    std::printf("unreliable, and not judged: %s\n", found.unreliable.c_str());
  }
  std::printf("%zu figures in both, %zu judged, %zu worse by more than %g %% and by noise\n",
              found.figures.size(), judged, worse, 100 * options.tolerance);
  const bool has_lost = found.lost != 0 && !options.allow_missing;
  if (has_lost) {
    std::printf("%zu figures of the base are not in the new run (--allow-missing)\n", found.lost);
  }
  return worse != 0 ? kWorse : has_lost ? kLost : judged == 0 ? kNotJudged : 0;
}

}  // namespace

int perf_gate(Calling, int argc, char** argv) {
  GateOptions options;
  const std::string wrong = parse_gate(argc, argv, &options);
  if (!wrong.empty()) {
    std::fprintf(stderr, "verbatim perf gate: %s\n%s", wrong.c_str(), kGateUsage);
    return 1;
  }
  if (options.help) {
    std::fputs(kGateUsage, stdout);
    return 0;
  }
  try {
    return compare_runs(options);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "verbatim perf gate: %s\n", failure.what());
    return 1;
  }
}

}  // namespace verbatim::cli
