// SPDX-License-Identifier: BSD-2-Clause
#include "perf/figures/cell.hpp"

#include <algorithm>
#include <limits>

namespace verbatim::perf {
namespace {

// Streams are counted in signaled groups of 32.
std::uint64_t granule_of(const Request& request) { return request.kind == Kind::kStream ? 32 : 1; }

std::uint64_t round_up(std::uint64_t value, std::uint64_t granule) {
  return (value + granule - 1) / granule * granule;
}

}  // namespace

double Cell::percentile_ns(double fraction) const {
  if (stamps.count() == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(stamps.percentile(fraction)) * ns_per_stamp;
}

const Cell* Group::find(const std::string& wanted) const {
  const auto found = std::find_if(cells.begin(), cells.end(),
                                  [&](const Cell& cell) { return cell.name == wanted; });
  return found == cells.end() ? nullptr : &*found;
}

const Cell* Group::best_variant(const std::string& family) const {
  const Cell* best = nullptr;
  for (const Cell& cell : cells) {
    if (cell.variant_of != family || cell.blocks.empty()) continue;
    if (best == nullptr || cell.blocks.median() < best->blocks.median()) best = &cell;
  }
  return best;
}

bool Group::is_shown(const Cell& cell) const {
  if (cell.blocks.empty()) return false;
  return cell.variant_of.empty() || best_variant(cell.variant_of) == &cell;
}

const Cell* Group::floor_of(const Cell& cell) const {
  if (cell.floor.empty()) return nullptr;
  const Cell* floor = find(cell.floor);
  if (floor == nullptr) floor = best_variant(cell.floor);
  return floor == nullptr || floor->unavailable ? nullptr : floor;
}

Blocks Group::ratio_of(const Cell& cell) const {
  const Cell* floor = floor_of(cell);
  return floor == nullptr ? Blocks{} : paired_ratio(cell.blocks, floor->blocks);
}

double value_of(const Reply& reply, Unit unit) {
  switch (unit) {
    case Unit::kNanoseconds:
      return reply.ns_per_operation();
    case Unit::kMillionPerSecond:
      return reply.million_per_second();
    case Unit::kGigabytesPerSecond:
      return reply.gigabytes_per_second();
  }
  return 0;
}

void calibrate(const Ask& ask, Cell& cell, double block_ms) {
  const std::uint64_t granule = granule_of(cell.request);
  const double wanted_ns = 1e6 * block_ms;
  std::uint64_t iterations = granule;
  while (true) {
    cell.request.iterations = iterations;
    double elapsed_ns = std::numeric_limits<double>::infinity();
    // The least of some: one that lost its core for milliseconds would make all blocks short.
    for (int again = 0; again < 3; ++again) {
      const Reply reply = ask(cell.request, cell.name);
      if (reply.unavailable != 0) {
        cell.unavailable = true;
        cell.why = reply.message;
        return;
      }
      elapsed_ns = std::min(elapsed_ns, reply.elapsed_ns);
      if (elapsed_ns <= wanted_ns / 8) break;
    }
    // Long enough to extrapolate from, and past the first touches.
    if (elapsed_ns > wanted_ns / 8) {
      const double scale = wanted_ns / elapsed_ns;
      const auto scaled = static_cast<std::uint64_t>(static_cast<double>(iterations) * scale);
      cell.request.iterations = std::max(granule, round_up(scaled, granule));
      return;
    }
    iterations *= 4;
  }
}

namespace {

// Of several attempts the first undisturbed one, else the one that lost least.
Reply run_undisturbed(const Ask& ask, Cell& cell, int attempts) {
  Reply best = ask(cell.request, cell.name);
  for (int attempt = 1; attempt < attempts && best.disturbed(); ++attempt) {
    ++cell.retaken;
    const Reply again = ask(cell.request, cell.name);
    if (again.waited_ns * best.elapsed_ns < best.waited_ns * again.elapsed_ns) best = again;
  }
  if (best.disturbed()) ++cell.disturbed;
  cell.cpu_ns += best.cpu_ns;
  cell.switches += best.switches;
  cell.operations += best.operations;
  cell.waited_ns += best.waited_ns;
  cell.elapsed_ns += best.elapsed_ns;
  return best;
}

Ask ends_of(Pair& pair) {
  return
      [&pair](const Request& request, const std::string& what) { return pair.run(request, what); };
}

/// Each operation of the block alike, by the two threads that measure.
bool has_countable_calls(Kind kind) {
  switch (kind) {
    case Kind::kHandover:
    case Kind::kCopyPingPong:
    case Kind::kEventPingPong:
    case Kind::kEmptyCalls:
    case Kind::kLocalCopy:
    case Kind::kSingleCopy:
    case Kind::kTrain:
    case Kind::kPingPong:
    case Kind::kCompletion:
    case Kind::kStream:
    case Kind::kEmptyPoll:
      return true;
    default:
      return false;
  }
}

}  // namespace

void calibrate(Pair& pair, Cell& cell, double block_ms) {
  calibrate(ends_of(pair), cell, block_ms);
}

void measure(const Ask& ask, Cell& cell, int attempts) {
  if (cell.unavailable) return;
  cell.blocks.add(value_of(run_undisturbed(ask, cell, attempts), cell.unit));
}

void measure(Pair& pair, Cell& cell, int attempts) {
  measure(ends_of(pair), cell, attempts);
  if (cell.unavailable || !cell.stamped) return;
  Request stamped = cell.request;
  stamped.stamped = 1;
  stamped.iterations = std::max<std::uint64_t>(1, stamped.iterations / 2);
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const Reply reply = pair.run(stamped, cell.name + ", single operations timed");
    if (reply.disturbed() && attempt + 1 < attempts) continue;
    cell.stamps.merge(pair.stamps());
    cell.ns_per_stamp = reply.ns_per_stamp;
    return;
  }
}

void count_system_calls(const Ask& ask, Cell& cell) {
  if (cell.unavailable || cell.blocks.empty() || !has_countable_calls(cell.request.kind)) return;
  Request request = cell.request;
  request.counts_calls = 1;
  const Reply reply = ask(request, cell.name + ", system calls counted");
  cell.system_calls = reply.system_calls / reply.operations;
}

}  // namespace verbatim::perf
