// SPDX-License-Identifier: BSD-2-Clause
// dropin, of MPI: Debian's Open MPI over our libibverbs.so.1, by its own verbs (openib) and by UCX's,
// beside its shared memory (vader); one program (perf/mpi/figures.c) for all.
#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include "perf/mpi/job.hpp"
#include "perf/peers/bench.hpp"
#include "perf/support/arguments.hpp"
#include "perf/support/process.hpp"
#include "perf/support/table.hpp"

namespace verbatim::perf {
namespace {

using Words = std::vector<std::string>;

/// Each launch takes seconds.
constexpr int kMostRounds = 5;

struct Way {
  const char* name;
  bool is_ours;
  Words options;
  Words environment;
};

const std::array<Way, 3>& ways() {
  static const std::array<Way, 3> kWays = {{
      {"vader", false, {"--mca", "pml", "ob1", "--mca", "btl", "vader,self"}, {}},
      {"openib",
       true,
       {"--mca", "pml", "ob1", "--mca", "btl", "openib,self", "--mca", "btl_openib_allow_ib", "1"},
       {}},
      {"pml/ucx over rc", true, {"--mca", "pml", "ucx"}, {"UCX_TLS=rc,self"}},
  }};
  return kWays;
}

/// A part of figures.c with one size.
struct Figure {
  const char* part;
  std::uint64_t size;
  bool is_bandwidth;
  std::string argument() const { return std::string(part) + ":" + std::to_string(size); }
  std::string text() const {
    return is_bandwidth ? size_text(size) + ", 64 Isend and Irecv at a time"
                        : size_text(size) + " B one way";
  }
};

constexpr std::array<Figure, 3> kFigures = {
    {{"latency", 8, false}, {"rate", 65536, true}, {"rate", 1048576, true}}};

struct Measured {
  std::array<Probe, kFigures.size()> figures;
};

MpiJob job_of(const Bench& bench, const Way& way) {
  MpiJob job;
  job.options = way.options;
  job.environment = way.environment;
  if (way.is_ours) job.before = {path_beside_own("cli/verbatim"), "exec", "--"};
  const double block_us = std::max(100.0, 500 * bench.options.block_ms);
  job.arguments = {"--block-us", std::to_string(static_cast<int>(block_us)), "--blocks", "5"};
  for (const Figure& figure : kFigures) job.arguments.push_back(figure.argument());
  return job;
}

/// One launch; a way that fails is missing from then on, with its words.
std::optional<Taken> take(Bench& bench, const Way& way, Measured& measured) {
  MpiRun run;
  try {
    run = run_mpi(MpiLibrary::kOpenMpi, job_of(bench, way), bench.cores, bench.fabric);
  } catch (const std::runtime_error& failure) {
    for (Probe& probe : measured.figures) probe.missing = failure.what();
    return std::nullopt;
  }
  for (const MpiFigure& found : run.figures) {
    for (std::size_t i = 0; i < kFigures.size(); ++i) {
      const Figure& wanted = kFigures[i];
      if (found.name != wanted.part || found.with != wanted.size) continue;
      Probe& probe = measured.figures[i];
      const double size = static_cast<double>(wanted.size);
      probe.blocks.add(wanted.is_bandwidth ? size / found.median : found.median);
      probe.disturbed += 2 * found.disturbed > found.blocks;
    }
  }
  return Taken{run.ms, 0, false};
}

}  // namespace

void judge_dropin_mpi(Bench& bench) {
  std::array<Measured, 3> measured;
  Probes launches;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const Way& way = ways()[i];
    std::string missing = missing_for(MpiLibrary::kOpenMpi);
    if (missing.empty() && !bench.cores.distinct) missing = "there is only one core";
    for (Probe& probe : measured[i].figures) {
      probe.name = way.name;
      probe.missing = missing;
    }
    launches.push_back(
        {way.name, [&, i] { return take(bench, ways()[i], measured[i]); }, missing, {}});
  }
  bench.run(launches, "Open MPI over libibverbs.so.1", std::min(bench.options.rounds, kMostRounds));
  for (std::size_t way = 1; way < measured.size(); ++way) {
    for (std::size_t i = 0; i < kFigures.size(); ++i) {
      bench.judge_ratio(
          "dropin",
          std::string("Open MPI, ") + ways()[way].name + " / vader, " + kFigures[i].text(),
          Sense::kShown, 0, measured[way].figures[i], measured[0].figures[i],
          kFigures[i].is_bandwidth ? "GB/s" : "ns");
    }
  }
}

}  // namespace verbatim::perf
