// SPDX-License-Identifier: BSD-2-Clause
// R4, R9, R11, R12 and mpi: one C program (perf/mpi/figures.c, which says how each figure is taken), compiled with this MPI, Open MPI and MPICH and
// started by their launchers in turn. Judged against the better of the two by median; where only one is here, against it, which
// the row says.
#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <tuple>

#include "perf/mpi/job.hpp"
#include "perf/peers/bench.hpp"
#include "perf/support/arguments.hpp"
#include "perf/support/table.hpp"

namespace verbatim::perf {
namespace {

// What has a launcher's start in every round.
constexpr int kMostRounds = 9;
/// Those of collectives have many figures in each.
constexpr int kMostCollectiveRounds = 5;
/// A line is flat that rises by no more than this from 10 to 10000.
constexpr double kFlat = 1.25;

std::string bytes_text(std::uint64_t bytes) {
  return size_text(bytes) + (bytes < 1024 ? " B" : "");
}

class Measured {
 public:
  explicit Measured(Bench& bench) : bench_(bench) {
    for (const MpiLibrary library : kLibraries) missing_[library] = missing_for(library);
  }

  void leave_out(MpiLibrary library, const char* reason) { missing_[library] = reason; }

  /// What is judged from here on stands in this row.
  void set_row(const char* row) { row_ = row; }

  /// The job with each library in turn, round by round.
  /// `beside`: what else is taken in these rounds.
  void run(const std::string& title, MpiJob job, int rounds, Probes* beside = nullptr) {
    char block[24];
    std::snprintf(block, sizeof block, "%.0f", std::max(100.0, 500 * bench_.options.block_ms));
    const std::string blocks = std::to_string(std::clamp(bench_.options.rounds, 5, kMostRounds));
    job.arguments.insert(job.arguments.begin(), {"--block-us", block, "--blocks", blocks});
    Probes probes;
    for (const MpiLibrary library : kLibraries) {
      probes.push_back({name_of(library),
                        [this, library, &job] { return take(library, job); },
                        missing_[library],
                        {}});
    }
    const std::size_t own = probes.size();
    if (beside != nullptr) std::ranges::move(*beside, std::back_inserter(probes));
    bench_.run(probes, title, rounds);
    if (beside != nullptr)
      std::move(probes.begin() + static_cast<long>(own), probes.end(), beside->begin());
  }

  Probe& probe(MpiLibrary library, const std::string& name, std::uint64_t with) {
    Probe& found = probes_[{library, name, with}];
    if (found.name.empty()) found.name = name_of(library);
    found.missing = missing_[library];
    if (found.missing.empty() && found.blocks.empty()) found.missing = "printed no such figure";
    return found;
  }

  void judge(const std::string& figure, Sense sense, double target, const std::string& name,
             std::uint64_t with, const char* unit, bool more_is_better = false) {
    const Probe* best = nullptr;
    for (const MpiLibrary peer : kMpiPeers) {
      const Probe& other = probe(peer, name, with);
      if (!other.missing.empty()) continue;
      if (best == nullptr || (other.blocks.median() > best->blocks.median()) == more_is_better)
        best = &other;
    }
    judge_against(best, figure + what_is_compared(name, with), sense, target, name, with, unit);
  }

  /// `best` null: no peer is here. The other one's figure, or why there is none, is told beside.
  void judge_against(const Probe* best, const std::string& figure, Sense sense, double target,
                     const std::string& name, std::uint64_t with, const char* unit) {
    const Probe& ours = probe(MpiLibrary::kVerbatim, name, with);
    const std::string others = told_of_peers(best, name, with);
    Probe nobody;
    if (best == nullptr) nobody.missing = others.substr(2);
    bench_.judge_ratio(row_, figure, sense, target, ours, best != nullptr ? *best : nobody, unit);
    bench_.verdicts.back().detail += others;
  }

  /// Of ours alone; the peers' figures are told beside.
  void judge_alone(const std::string& figure, Sense sense, double target, const std::string& name,
                   std::uint64_t with, const char* unit) {
    bench_.judge_value(row_, figure, sense, target, probe(MpiLibrary::kVerbatim, name, with), unit);
    bench_.verdicts.back().detail += told_of_peers(nullptr, name, with);
  }

 private:
  static constexpr std::array kLibraries = {MpiLibrary::kVerbatim, MpiLibrary::kOpenMpi,
                                            MpiLibrary::kMpich};

  /// But of the one that is compared with.
  std::string told_of_peers(const Probe* best, const std::string& name, std::uint64_t with) {
    std::string others;
    for (const MpiLibrary peer : kMpiPeers) {
      const Probe& other = probe(peer, name, with);
      if (&other == best) continue;
      others +=
          std::string("; ") + name_of(peer) +
          (other.missing.empty() ? " " + number_text(other.blocks.median()) : ": " + other.missing);
    }
    return others;
  }

  std::string what_is_compared(const std::string& name, std::uint64_t with) {
    std::string there;
    for (const MpiLibrary peer : kMpiPeers) {
      if (!probe(peer, name, with).missing.empty()) continue;
      there = there.empty() ? std::string(" / ") + name_of(peer) + " alone" : " / best of both";
    }
    return there.empty() ? " / best of both" : there;
  }

  /// A library that fails is missing from then on, with its words.
  std::optional<Taken> take(MpiLibrary library, const MpiJob& job) {
    MpiRun run;
    try {
      run = run_mpi(library, job, bench_.cores, bench_.fabric);
    } catch (const std::runtime_error& failure) {
      missing_[library] = failure.what();
      return std::nullopt;
    }
    const auto add = [&](const std::string& name, std::uint64_t with, double value, bool is_bad) {
      Probe& one = probes_[{library, name, with}];
      one.blocks.add(value);
      one.disturbed += is_bad;
    };
    for (const MpiFigure& figure : run.figures) {
      const bool is_rate = figure.name == "rate";
      add(figure.name, figure.with, is_rate ? 1000 / figure.median : figure.median,
          2 * figure.disturbed > figure.blocks);
    }
    add("start", static_cast<std::uint64_t>(job.ranks), run.ms, false);
    return Taken{run.ms, 0, false};
  }

  Bench& bench_;
  std::string row_ = "mpi";
  std::map<MpiLibrary, std::string> missing_;
  std::map<std::tuple<MpiLibrary, std::string, std::uint64_t>, Probe> probes_;
};

void judge_pair(Bench& bench, int rounds) {
  Measured measured(bench);
  measured.run("MPI, 2 ranks",
               {2,
                true,
                {"latency", "small", "alloc", "malloc", "rate", "posted", "unexpected",
                 "reverse:10", "reverse:1000"}},
               rounds);
  const auto bytes = [&](const char* name, const char* memory, double target,
                         std::initializer_list<std::uint64_t> sizes) {
    for (const std::uint64_t size : sizes) {
      measured.judge(bytes_text(size) + " one way" + memory,
                     target > 0 ? Sense::kAtMost : Sense::kShown, target, name, size, "ns");
    }
  };
  measured.set_row("R4");
  bytes("latency", "", 0.95, {8});
  measured.set_row("mpi");
  bytes("small", "", 0, {64, 256, 1024, 4096});
  bytes("alloc", ", MPI_Alloc_mem", 0.4, {65536, 262144, 1048576, 4194304});
  bytes("malloc", ", malloc", 0.5, {65536, 262144, 1048576, 4194304});
  measured.judge("8 B, 64 Isend and Irecv at a time", Sense::kAtLeast, 1.3, "rate", 8, "million/s",
                 true);
  const auto flat = [&](const char* name, const char* figure, Sense sense) {
    bench.judge_ratio("mpi", figure, sense, kFlat,
                      measured.probe(MpiLibrary::kVerbatim, name, 10000),
                      measured.probe(MpiLibrary::kVerbatim, name, 10), "ns");
  };
  flat("posted", "8 B one way behind 10000 posted receives / behind 10", Sense::kAtMost);
  flat("unexpected", "8 B one way behind 10000 unexpected messages / behind 10", Sense::kShown);
  for (const std::uint64_t count : {10u, 100u, 1000u, 10000u}) {
    const std::string many = std::to_string(count);
    measured.judge("8 B one way behind " + many + " posted", Sense::kShown, 0, "posted", count,
                   "ns");
    measured.judge("8 B one way behind " + many + " unexpected", Sense::kShown, 0, "unexpected",
                   count, "ns");
  }
  for (const std::uint64_t count : {10u, 1000u}) {
    measured.judge("8 B, " + std::to_string(count) + " receives met in reverse", Sense::kShown, 0,
                   "reverse", count, "ns");
  }
}

/// Each of a few lengths, by every MPI's own choice of algorithm.
void judge_collectives(Bench& bench, int rounds) {
  constexpr const char* kNames[] = {"bcast", "reduce", "allreduce", "allgather", "alltoall"};
  constexpr std::uint64_t kShort[] = {8, 64, 512, 4096};
  constexpr std::uint64_t kLong[] = {65536, 1048576};
  MpiJob job = {2, true, {"barrier"}};
  for (const char* name : kNames) {
    job.arguments.emplace_back(name);
    for (const std::uint64_t size : kLong)
      job.arguments.push_back(std::string(name) + "-alloc:" + std::to_string(size));
  }
  Measured measured(bench);
  // The hand-over in the same rounds.
  Probes floors;
  for (const Pace pace : kAllPaces)
    floors.push_back(bench.ours("F1 " + std::string(name_of(pace)),
                                {.kind = Kind::kHandover, .pace = pace}, Unit::kNanoseconds));
  measured.run("MPI, collectives of 2 ranks", job, rounds, &floors);
  measured.set_row("R11");
  measured.judge("barrier of 2 ranks", Sense::kAtMost, 0.6, "barrier", 8, "ns");
  const Probe& floor = best_of(floors, "F1 ", Sense::kAtMost);
  bench.judge_ratio("R11", "allreduce of 2 ranks, 8 B / F1", Sense::kAtMost, 2,
                    measured.probe(MpiLibrary::kVerbatim, "allreduce", 8), floor, "ns");
  const auto is_one_of = [](std::string_view name, std::initializer_list<std::string_view> all) {
    return std::ranges::find(all, name) != all.end();
  };
  for (const char* name : kNames) {
    const std::string one = std::string(name) + " of 2 ranks, ";
    for (const std::uint64_t size : kShort) {
      measured.set_row(size == 8 && is_one_of(name, {"allreduce", "bcast"}) ? "R11" : "mpi");
      measured.judge(one + bytes_text(size), Sense::kAtMost, 0.6, name, size, "ns");
    }
    measured.set_row(is_one_of(name, {"allreduce", "bcast", "alltoall"}) ? "R12" : "mpi");
    for (const std::uint64_t size : kLong) {
      measured.judge(one + bytes_text(size) + ", malloc", Sense::kAtMost, 0.6, name, size, "ns");
      measured.judge(one + bytes_text(size) + ", MPI_Alloc_mem", Sense::kAtMost, 0.4,
                     std::string(name) + "-alloc", size, "ns");
    }
  }
}

/// Two after each other, round by round.
Probe sum_of(const Probe& one, const Probe& other) {
  Probe sum;
  sum.name = "both";
  sum.missing = one.missing.empty() ? other.missing : one.missing;
  const std::size_t rounds = std::min(one.blocks.size(), other.blocks.size());
  for (std::size_t i = 0; i < rounds; ++i)
    sum.blocks.add(one.blocks.values()[i] + other.blocks.values()[i]);
  sum.disturbed = std::min(rounds, one.disturbed + other.disturbed);
  return sum;
}

/// From one length to its double, as a part of that growth: the largest of all steps by its median.
void judge_steps(Bench& bench, Measured& measured, const std::string& name) {
  constexpr std::uint64_t kFrom = 8, kTo = 4u << 20;
  const std::string of = name + "-fresh";
  Verdict worst{"mpi", name + " of 2 ranks, largest step from 8 B to 4 MiB / growth of the length",
                "x",   Sense::kAtMost,
                1.3,   {},
                {},    {}};
  for (std::uint64_t size = kFrom; size < kTo; size *= 2) {
    const Probe& from = measured.probe(MpiLibrary::kVerbatim, of, size);
    const Probe& to = measured.probe(MpiLibrary::kVerbatim, of, 2 * size);
    worst.missing = from.missing.empty() ? to.missing : from.missing;
    if (!worst.missing.empty()) break;
    std::vector<double> parts;
    const Blocks steps = paired_ratio(to.blocks, from.blocks);
    for (const double step : steps.values()) parts.push_back(step / 2);
    const Blocks grown(std::move(parts));
    if (!worst.values.empty() && !(grown.median() > worst.values.median())) continue;
    worst.values = grown;
    worst.detail = "to " + bytes_text(2 * size) + ", " + number_text(from.blocks.median()) +
                   " to " + number_text(to.blocks.median()) + " ns";
    worst.disturbed = from.is_unreliable() || to.is_unreliable();
  }
  bench.verdicts.push_back(std::move(worst));
}

/// Each collective beside others of this MPI that could stand for it, and beside itself of the
/// neighbouring length.
void judge_consistency(Bench& bench, int rounds) {
  const auto run = [&](Measured& measured, const char* title,
                       const std::vector<std::string>& arguments) {
    for (const MpiLibrary peer : kMpiPeers) measured.leave_out(peer, "is not asked");
    measured.run(title, {2, true, arguments}, rounds);
  };
  constexpr std::uint64_t kSizes[] = {8, 4096, 65536, 1048576};
  std::vector<std::string> among = {"barrier", "allreduce:4"};
  for (const std::uint64_t size : kSizes)
    for (const char* name : {"allreduce", "reduce", "bcast"})
      among.push_back(std::string(name) + "-fresh:" + std::to_string(size));
  Measured measured(bench);
  run(measured, "MPI, collectives among themselves", among);
  const auto ours = [&](const char* name, std::uint64_t size) -> Probe& {
    return measured.probe(MpiLibrary::kVerbatim, name, size);
  };
  for (const std::uint64_t size : kSizes)
    bench.judge_ratio("mpi", "allreduce / reduce and bcast of 2 ranks, " + bytes_text(size),
                      Sense::kAtMost, 1.1, ours("allreduce-fresh", size),
                      sum_of(ours("reduce-fresh", size), ours("bcast-fresh", size)), "ns");
  bench.judge_ratio("mpi", "barrier / allreduce of 4 B, 2 ranks", Sense::kAtMost, 1,
                    ours("barrier", 8), ours("allreduce", 4), "ns");
  for (const char* name : {"bcast", "reduce", "allreduce", "allgather", "alltoall"}) {
    Measured lengths(bench);
    run(lengths, "MPI, lengths of a collective", {std::string(name) + "-fresh"});
    judge_steps(bench, lengths, name);
  }
}

void judge_overlap(Bench& bench, int rounds) {
  constexpr std::uint64_t kLength = 1u << 20;
  Measured measured(bench);
  measured.run("MPI, overlap", {2, true, {"overlap:" + std::to_string(kLength)}}, rounds);
  measured.judge_alone("iallreduce of 2 ranks, 1 MiB, polled: hidden behind a computation",
                       Sense::kAtLeast, 80, "overlap", kLength, "%");
}

/// Of ranks that share cores, by whom Open MPI is told to yield.
void judge_sharing_collectives(Bench& bench, int ranks, int rounds) {
  Measured sharing(bench);
  sharing.set_row("R9");
  // Each round of its takes as many turns of the kernel's clock as there are ranks.
  sharing.leave_out(MpiLibrary::kMpich, "spins");
  sharing.run("MPI, collectives of " + std::to_string(ranks) + " ranks on 2 cores",
              {ranks, false, {"barrier", "allreduce:8"}}, rounds);
  for (const auto& [name, figure] :
       {std::pair{"barrier", "barrier of "}, std::pair{"allreduce", "allreduce of 8 B, "}})
    sharing.judge_against(&sharing.probe(MpiLibrary::kOpenMpi, name, 8),
                          figure + std::to_string(ranks) + " ranks on 2 cores / Open MPI, yielding",
                          Sense::kAtMost, 0.7, name, 8, "ns");
}

}  // namespace

void judge_mpi(Bench& bench) {
  const int rounds = std::min(bench.options.rounds, kMostRounds);
  const bool all = bench.wants("mpi");
  const bool collectives = all || bench.wants("R11") || bench.wants("R12");
  if (bench.cores.distinct) {
    if (all || bench.wants("R4")) judge_pair(bench, rounds);
    if (collectives) judge_collectives(bench, std::min(rounds, kMostCollectiveRounds));
    if (all) judge_consistency(bench, std::min(rounds, kMostCollectiveRounds));
    if (all) judge_overlap(bench, std::min(rounds, kMostCollectiveRounds));
  } else {
    for (const char* row : {"R4", "R11", "R12", "mpi"})
      bench.verdicts.push_back({row,
                                "between 2 ranks, each on a core of its own",
                                "x",
                                Sense::kShown,
                                0,
                                {},
                                {},
                                "there is only one core"});
  }
  if (all || bench.wants("R9")) {
    for (const int ranks : {4, 8, 16})
      judge_sharing_collectives(bench, ranks, std::min(rounds, kMostCollectiveRounds));
  }
  if (!all) return;

  // Where a core has two ranks: who yields is asked of Open MPI alone, which can be told to.
  Measured sharing(bench);
  sharing.run("MPI, 4 ranks on 2 cores", {4, false, {"idle"}}, rounds);
  const Probe& yielding = sharing.probe(MpiLibrary::kOpenMpi, "idle", 8);
  sharing.judge_against(&yielding,
                        "8 B one way between 2 of 4 ranks on 2 cores / Open MPI, yielding",
                        Sense::kAtMost, 0.7, "idle", 8, "ns");

  Measured many(bench);
  many.run("MPI, memory of 16 ranks", {16, false, {"memory"}}, std::min(rounds, 3));
  many.judge("resident, 16 ranks that have talked to all", Sense::kAtMost, 0.5, "resident", 16,
             "KiB");
  many.judge("share of what is resident, 16 ranks", Sense::kAtMost, 0.5, "share", 16, "KiB");

  Measured communicators(bench);
  communicators.leave_out(MpiLibrary::kMpich, "spins");
  communicators.run("MPI, communicators of 16 ranks", {16, false, {"communicator"}},
                    std::min(rounds, 3));
  communicators.judge_alone("each communicator by which collectives go, of each of 16 ranks",
                            Sense::kAtMost, 64, "communicator", 16, "KiB");

  for (const int ranks : {2, 16}) {
    Measured start(bench);
    start.run("MPI, start", {ranks, ranks == 2 && bench.cores.distinct, {"nothing"}}, rounds);
    start.judge("launch, MPI_Init, barrier, MPI_Finalize of " + std::to_string(ranks) + " ranks",
                Sense::kAtMost, 1, "start", static_cast<std::uint64_t>(ranks), "ms");
  }
}

}  // namespace verbatim::perf
