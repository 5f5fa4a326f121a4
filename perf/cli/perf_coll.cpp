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
#include "perf/cli/perf_coll_options.hpp"
#include "perf/cli/perf_coll_report.hpp"
#include "perf/cli/perf_coll_run.hpp"
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
      (void)check_coll(options, options.ranks.value_or(kRanksByItself));
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
                         [&](int rank, int ranks) { return measure_coll(options, rank, ranks); });
}

}  // namespace verbatim::cli
