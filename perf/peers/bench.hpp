// SPDX-License-Identifier: BSD-2-Clause
// What the target groups share: the two ends, the rounds, and probes. A probe is one thing measured
// once per round, ours or another library's; probes of a group are taken in turn, so that a drift
// of the machine meets all of them.
#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "perf/ends/pair.hpp"
#include "perf/figures/cell.hpp"
#include "perf/peers/verdict.hpp"
#include "perf/support/clock.hpp"
#include "perf/support/noise.hpp"
#include "perf/support/progress.hpp"

namespace verbatim::perf {

/// One measurement, and how much of it was lost to other programs on the same core.
struct Taken {
  double value;
  double waited_ns;
  bool disturbed;
};

struct Probe {
  std::string name;
  std::function<std::optional<Taken>()> take;  // nothing: this machine does not offer it
  std::string missing;                         // set: not measured, and why
  Blocks blocks;
  std::size_t disturbed = 0;  // of them
  bool is_theirs = false;     // by another library's program: when it fails, its rows are missing

  /// More than half of it was taken while others had the cores: no ground for a verdict.
  bool is_unreliable() const { return 2 * disturbed > blocks.size(); }
};

using Probes = std::deque<Probe>;

struct BenchOptions {
  int rounds = 9;
  double block_ms = 4;
  double seconds = 300;           // after so long nothing is taken again, and three rounds must do
  std::vector<std::string> rows;  // empty: all
};

class Bench {
 public:
  Bench(const BenchOptions& wanted, const CorePair& where, const std::string& folder)
      : options(wanted), cores(where), fabric(folder) {}

  const BenchOptions& options;
  const CorePair& cores;
  const std::string& fabric;
  std::vector<Verdict> verdicts;

  /// The pair with a connected endpoint, started at the first call.
  Pair& pair();
  bool wants(const std::string& row) const;
  void run(Probes& probes, const std::string& title, int rounds);

  /// Of everything that was kept so far; the floor is F1's, where it was measured.
  Noise noise() const;
  double floor_spread = std::numeric_limits<double>::quiet_NaN();

  int retaken = 0;    // measurements thrown away since somebody else had a core
  int disturbed = 0;  // and kept nevertheless, after several attempts

  /// A block of ours; its length is found by the first one.
  Probe ours(const std::string& name, const Request& request, Unit unit);
  /// `installed` false: missing, with the package to install.
  Probe theirs(const std::string& name, bool installed, const char* package,
               std::function<Taken()> take);

  /// value / reference, round by round.
  void judge_ratio(const std::string& row, const std::string& figure, Sense sense, double target,
                   const Probe& value, const Probe& reference, const char* unit);
  void judge_value(const std::string& row, const std::string& figure, Sense sense, double target,
                   const Probe& value, const char* unit);

 private:
  void take_once(Probe& probe);
  bool is_late() const;

  std::uint64_t start_ns_ = now_ns();
  NoiseWatch watch_;
  double kept_ns_ = 0, kept_waited_ns_ = 0;
  Progress progress_;
  std::optional<Pair> pair_;
};

/// More than this lost in a whole run of another program is a disturbance; its own start costs
/// less.
inline constexpr double kLostInPrograms = 1e6;

/// A reply of ours as a measurement.
inline Taken taken(const Reply& reply, double value) {
  return {value, reply.waited_ns, reply.disturbed()};
}

/// The one with the best median among those whose name starts so; they are our polling styles.
const Probe& best_of(const Probes& probes, const std::string& prefix, Sense sense);
const Probe& named(const Probes& probes, const std::string& name);

// The groups of the table of targets (rows.hpp), one file each.
void judge_latency(Bench& bench);     // R1, R2, R3
void judge_rate(Bench& bench);        // R5
void judge_sizes(Bench& bench);       // R15, sizes
void judge_bandwidth(Bench& bench);   // R6, R7
void judge_pages(Bench& bench);       // pages: of 2 MiB and of 4 KiB
void judge_polling(Bench& bench);     // R8
void judge_sleeping(Bench& bench);    // R10
void judge_many(Bench& bench);        // R17
void judge_one_core(Bench& bench);    // R18
void judge_setup(Bench& bench);       // R13
void judge_topology(Bench& bench);    // R13
void judge_memory(Bench& bench);      // R14, R16, memory
void judge_allocation(Bench& bench);  // alloc
void judge_mpi(Bench& bench);         // R4, R9, R11, R12, mpi: this MPI, Open MPI and MPICH
void judge_dropin(Bench& bench);      // R19, R20, dropin: Debian's programs on libibverbs.so.1
void judge_kernel(Bench& bench);      // kernel: perftest on a device of the kernel
void judge_dropin_mpi(Bench& bench);  // dropin: Open MPI on it
void judge_served(Bench& bench);      // served: what only the owner of the memory can perform

}  // namespace verbatim::perf
