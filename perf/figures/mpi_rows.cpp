// SPDX-License-Identifier: BSD-2-Clause
#include "perf/figures/mpi_rows.hpp"

#include "perf/mpi/job.hpp"
#include "perf/support/arguments.hpp"

namespace verbatim::perf {
namespace {

constexpr int kBlocksOfAJob = 5;

void add_beside(Group& group, const char* part, Unit unit, const Request& request) {
  const std::string what = std::string(name_of(request.memory)) + " " + size_text(request.size);
  const std::string shape = unit == Unit::kNanoseconds ? "" : "rate ";
  Cell send;
  send.name = "verbs " + shape + "send " + what;
  send.unit = unit;
  send.request = request;
  Cell mpi;
  mpi.name = "mpi " + shape + what;
  mpi.section = Section::kMpi;
  mpi.unit = unit;
  mpi.request = request;
  mpi.mpi = part;
  mpi.floor = send.name;
  group.cells.push_back(std::move(send));
  group.cells.push_back(std::move(mpi));
}

const MpiFigure* figure_of(const MpiRun& run, const Cell& cell) {
  for (const MpiFigure& figure : run.figures) {
    if (figure.name == cell.mpi && figure.with == cell.request.size) return &figure;
  }
  return nullptr;
}

}  // namespace

Group mpi_group(const std::vector<std::uint64_t>& sizes) {
  Group group;
  group.name = "MPI";
  for (const Memory memory : {Memory::kShared, Memory::kPrivate}) {
    for (const std::uint64_t size : sizes) {
      add_beside(group, memory == Memory::kShared ? "alloc" : "malloc", Unit::kNanoseconds,
                 {.kind = Kind::kPingPong, .memory = memory, .pace = Pace::kPause, .size = size});
    }
  }
  add_beside(group, "rate", Unit::kMillionPerSecond,
             {.kind = Kind::kStream, .memory = Memory::kPrivate, .pace = Pace::kPause, .size = 8});
  return group;
}

void measure_mpi(Group& group, double block_ms, const CorePair& cores, const std::string& folder) {
  const bool is_here = missing_for(MpiLibrary::kVerbatim).empty();
  MpiJob job{2,
             cores.distinct,
             {"--block-us", std::to_string(static_cast<int>(1000 * block_ms / 2) + 1), "--blocks",
              std::to_string(kBlocksOfAJob)}};
  for (Cell& cell : group.cells) {
    if (cell.section != Section::kMpi) continue;
    cell.unavailable = !is_here;
    job.arguments.push_back(cell.mpi + ":" + std::to_string(cell.request.size));
  }
  if (!is_here) return;
  const MpiRun run = run_mpi(MpiLibrary::kVerbatim, job, cores, folder);
  for (Cell& cell : group.cells) {
    if (cell.section != Section::kMpi) continue;
    const MpiFigure* const figure = figure_of(run, cell);
    cell.unavailable = figure == nullptr;
    if (figure == nullptr) continue;
    cell.blocks.add(cell.unit == Unit::kMillionPerSecond ? 1000 / figure->median : figure->median);
    cell.disturbed += 2 * figure->disturbed > figure->blocks;
  }
}

}  // namespace verbatim::perf
