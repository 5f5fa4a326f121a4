// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_coll_run.hpp"

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "perf/cli/failure.hpp"
#include "perf/cli/perf_coll_measure.hpp"
#include "perf/cli/perf_coll_report.hpp"
#include "perf/cli/perf_floor_plan.hpp"
#include "perf/cli/perf_progress.hpp"
#include "perf/cli/perf_rank_floors.hpp"
#include "perf/cli/perf_ranks.hpp"

namespace verbatim::cli {
namespace {

std::optional<PerfRunFloors> take_floors(const CollOptions& options,
                                         const std::vector<std::uint64_t>& sizes, int ranks) {
  std::vector<PerfFloorOfCollective> all;
  for (const std::uint64_t size : sizes)
    all.push_back({static_cast<std::uint32_t>(size), coll_moved(*options.call, size, ranks)});
  std::string note = "test/floor of a collective is normally above 1";
  if (options.is_nonblocking) note = "test: the collective by itself; " + note;
  if (coll_waits_partly(*options.call))
    note += ", but for ranks that wait for nobody, which are in the mean";
  return take_rank_floors({"collective", true, false, true, note}, plan_collective_floors(all), 1);
}

std::string progress_text(const CollOptions& options, std::uint64_t size) {
  const std::string name = std::string(options.is_nonblocking ? "i" : "") + options.call->name;
  return options.call->gives == CollSide::kNone ? name
                                                : name + ", " + std::to_string(size) + " bytes";
}

}  // namespace

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
    if (options.has_floors && PerfRunFloors::possible()) {
      std::optional<PerfRunFloors> floors = take_floors(options, sizes, ranks);
      if (report) report->set_floors(std::move(floors));
    }
    if (report) report->heading(meter.is_one_host());
    for (const std::uint64_t size : sizes) {
      std::optional<PerfProgress> progress;
      if (report) progress.emplace(progress_text(options, size), 0);
      const CollFigures figures = meter.measure(size);
      progress.reset();
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
