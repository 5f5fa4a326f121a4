// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_coll_run.hpp"

#include <cstdio>
#include <optional>
#include <string_view>

#include "perf/cli/failure.hpp"
#include "perf/cli/perf_coll_measure.hpp"
#include "perf/cli/perf_coll_report.hpp"
#include "perf/cli/perf_ranks.hpp"

namespace verbatim::cli {

std::vector<std::uint64_t> check_coll(const CollOptions& options, int ranks) {
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

int measure_coll(const CollOptions& options, int rank, int ranks) {
  std::uint64_t wrong = 0;
  try {
    std::vector<std::uint64_t> sizes;
    std::optional<CollReport> report;
    try {
      sizes = check_coll(options, ranks);
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

}  // namespace verbatim::cli
