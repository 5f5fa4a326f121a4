// SPDX-License-Identifier: BSD-2-Clause
// One figure of the table while it is being measured: what to ask the two ends, and the blocks they
// have answered so far. A Group is what is measured in turn, round by round: tests together with
// the floors they are compared with.
#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "perf/ends/pair.hpp"
#include "perf/support/blocks.hpp"
#include "perf/support/histogram.hpp"

namespace verbatim::perf {

enum class Unit { kNanoseconds, kMillionPerSecond, kGigabytesPerSecond };
enum class Section { kFloor, kLatency, kRate, kBandwidth, kMpi };

struct Cell {
  std::string name;        // unique within its group
  std::string variant_of;  // measured in several polling styles: the best one by median stands in
                           // the tables
  Section section = Section::kFloor;
  Unit unit = Unit::kNanoseconds;
  Request request;     // iterations are found by the first block; of kMpi: size and memory
  std::string number;  // of a floor in the list of floors: "F4"
  std::string mpi;     // of kMpi: the part of perf/mpi/figures.c
  std::string
      floor;  // name, or family of variants, of this group that it is compared with; empty: none
  bool stamped = false;
  // Results.
  int retaken = 0;    // blocks thrown away because somebody else had one of the cores
  int disturbed = 0;  // blocks kept although so, after kAttempts
  bool unavailable = false;
  std::string why;  // unavailable: in words, where the end had some
  Blocks blocks;
  Histogram stamps;
  double ns_per_stamp = 0;
  double cpu_ns = 0;      // of all blocks kept, at both ends
  double switches = 0;    // likewise
  double operations = 0;  // likewise
  double system_calls = std::numeric_limits<double>::quiet_NaN();  // of one operation
  double waited_ns = 0;  // both ends', for a core that others had
  double elapsed_ns = 0;

  double percentile_ns(double fraction) const;
};

struct Group {
  std::string name;
  std::uint64_t size = 0;
  std::deque<Cell> cells;

  const Cell* find(const std::string& name) const;
  /// Of the cells with this `variant_of`, the one with the least median; nullptr without such
  /// cells.
  const Cell* best_variant(const std::string& family) const;
  /// Whether the tables show it: not a variant, or the best one.
  bool is_shown(const Cell& cell) const;
  const Cell* floor_of(const Cell& cell) const;
  /// cell / floor, paired by round.
  Blocks ratio_of(const Cell& cell) const;
};

double value_of(const Reply& reply, Unit unit);

/// Takes a block of what is asked for, whoever measures it; `what` names it in a failure.
using Ask = std::function<Reply(const Request& request, const std::string& what)>;

/// Finds how many iterations make a block of about `block_ms`.
void calibrate(const Ask& ask, Cell& cell, double block_ms);
void calibrate(Pair& pair, Cell& cell, double block_ms);

/// How often a block is taken that is disturbed again and again.
inline constexpr int kAttempts = 6;

/// One more block of `cell` (and a stamped one if it wants that), preferably one during which
/// nobody else had a core of ours.
void measure(Pair& pair, Cell& cell, int attempts = kAttempts);
/// The same of a cell that wants no stamped one.
void measure(const Ask& ask, Cell& cell, int attempts = kAttempts);

/// A block that is not timed, for the system calls of one operation; of what is measured by other
/// means, or makes threads, none.
void count_system_calls(const Ask& ask, Cell& cell);

}  // namespace verbatim::perf
