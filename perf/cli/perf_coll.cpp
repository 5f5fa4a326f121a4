// SPDX-License-Identifier: BSD-2-Clause
// `verbatim perf coll <name>`: what a collective of this MPI takes, by the ranks of a launcher's job
// or by ranks that it starts itself. Main thread.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "perf/cli/commands.hpp"
#include "perf/cli/failure.hpp"
#include "perf/cli/perf_coll_measure.hpp"
#include "perf/cli/perf_coll_options.hpp"
#include "perf/cli/perf_coll_report.hpp"
#include "perf/cli/perf_ranks.hpp"

namespace verbatim::cli {
namespace {

constexpr int kRanksByItself = 2;

/// As the user's own word would say it, before MPI_Init reads it.
void choose_algorithm(const CollOptions& options) {
  if (options.algorithm.empty()) return;
  const char* const variable = vmpi::facts_of(options.call->family).variable;
  if (options.algorithm != "table") {
    setenv(variable, options.algorithm.c_str(), 1);
    return;
  }
  unsetenv(variable);
  setenv("VERBATIM_COLL_HOST", "off", 1);
}

/// What is known of so many ranks before anything is measured. Throws Failure.
std::vector<std::uint64_t> check_among(const CollOptions& options, int ranks) {
  if (options.ranks && *options.ranks != ranks)
    fail("the launcher has started %d ranks, not %d (-n)", ranks, *options.ranks);
  if (options.root >= ranks)
    fail("root %d is none of %d ranks, 0 to %d (-k)", options.root, ranks, ranks - 1);
  const std::vector<std::uint64_t> sizes = coll_sizes(options, ranks);
  if (!options.algorithm.empty() && options.algorithm != "table") {
    const std::string_view name = options.call->name;
    const bool is_alike = !name.ends_with('v') && !name.ends_with('w');
    const vmpi::KnownAlgorithm* const wanted =
        vmpi::find_algorithm(options.call->family, options.algorithm.c_str());
    if (const char* const why = vmpi::unmet(*wanted, {.ranks = ranks, .are_alike = is_alike}))
      fail("%s %s, and %s is of %d ranks (-a)", wanted->name, why, options.call->name, ranks);
  }
  // The largest takes the most memory: what it cannot have is known before the others take their time.
  check_coll_memory(options, ranks, sizes.back());
  return sizes;
}

int measure_all(const CollOptions& options, int rank, int ranks) {
  std::uint64_t wrong = 0;
  try {
    std::vector<std::uint64_t> sizes;
    std::optional<CollReport> report;
    try {
      sizes = check_among(options, ranks);
    } catch (const Failure& failure) {
      if (rank == 0) std::fprintf(stderr, "%s\n", failure.line.c_str());
      return failure.status;
    }
    if (rank == 0) {
      report.emplace(options, ranks);
      tell_when_interrupted();
    }
    CollMeter meter(options, rank, ranks);
    if (report) report->heading(meter.is_one_host());
    for (const std::uint64_t size : sizes) {
      const CollFigures figures = meter.measure(size);
      if (!report) continue;
      report->row(figures);
      wrong += figures.wrong;
    }
    if (report) report->finish();
  } catch (const Failure& failure) {
    end_all_ranks(rank, failure);
  }
  MPI_Bcast(&wrong, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int perf_coll(Calling, int argc, char** argv) {
  CollOptions options;
  std::string wrong;
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool is_rank = is_started_as_rank();
  try {
    options = parse_coll(argc, argv);
    if (options.help) {
      coll_usage(argv[0]);
      return 0;
    }
    choose_algorithm(options);
    if (!is_rank) {
      // By one process, which says it in one line.
      (void)check_among(options, options.ranks.value_or(kRanksByItself));
      (void)CollReport(options, options.ranks.value_or(kRanksByItself));
      std::vector<std::string> own = {"perf", "coll"};
      own.insert(own.end(), words.begin(), words.end());
      return run_own_ranks(options.ranks.value_or(kRanksByItself), own);
    }
  } catch (const Failure& failure) {
    wrong = failure.line;
    if (!is_rank) {
      std::fprintf(stderr, "%s\n", wrong.c_str());
      return failure.status;
    }
  }
  return run_among_ranks(argc, argv, wrong,
                         [&](int rank, int ranks) { return measure_all(options, rank, ranks); });
}

}  // namespace verbatim::cli
