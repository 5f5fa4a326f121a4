// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_floor_meter.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>

#include "perf/figures/cell.hpp"
#include "perf/support/clock.hpp"

namespace verbatim::cli {
namespace {

constexpr int kRounds = 3;
// Each way also takes two blocks or so to find how long they are to be.
constexpr double kBlocksOfAWay = kRounds + 2;
constexpr double kAllBlocksMs = 60, kLongestBlockMs = 0.5, kShortestBlockMs = 0.1;
/// Of a busy machine, where blocks take as long as it likes: from then on one has to do.
constexpr double kLateNs = 200e6;
/// And from then on what has not been begun is left out.
constexpr double kTooLateNs = 1e9;
constexpr const char* kBusy = "the machine is too busy to measure it in time";

struct WayOfFloor {
  std::size_t floor;
  std::size_t way;
  perf::Cell cell;
};

class Meter {
 public:
  Meter(std::span<const PerfFloor> floors, const perf::CorePair& cores, const StopSignals& stop,
        std::vector<PerfFloorTaken>* taken)
      // No end opens a device: there is nothing to meet at.
      : floors_{floors}, stop_{stop}, taken_{*taken}, pair_{cores, ""} {}

  void measure() {
    std::vector<WayOfFloor> ways;
    for (std::size_t floor = 0; floor < floors_.size(); ++floor) prepare(floor, &ways);
    for (int round = 0; round < kRounds; ++round) {
      for (WayOfFloor& way : ways) {
        if (round > 0 && is_late()) continue;
        look_for_stop();
        perf::measure(pair_, way.cell, is_late() ? 1 : kAttempts);
      }
    }
    for (WayOfFloor& way : ways) {
      PerfFloorTaken& taken = taken_[way.floor];
      taken.ways[way.way] = std::move(way.cell.blocks);
      taken.disturbed += static_cast<std::size_t>(way.cell.disturbed);
    }
  }

 private:
  static constexpr int kAttempts = 2;

  /// Its ways are of one kind: the first one tells how many of each make a block.
  void prepare(std::size_t floor, std::vector<WayOfFloor>* ways) {
    if (!taken_[floor].missing.empty()) return;
    if (is_behind(kTooLateNs)) {
      taken_[floor].missing = kBusy;
      return;
    }
    perf::Cell cell;
    cell.name = floors_[floor].name;
    cell.unit = floors_[floor].is_time ? perf::Unit::kNanoseconds : perf::Unit::kGigabytesPerSecond;
    for (std::size_t way = 0; way < floors_[floor].ways.size(); ++way) {
      const std::uint64_t iterations = cell.request.iterations;
      cell.request = floors_[floor].ways[way];
      cell.request.iterations = iterations;
      if (way == 0 && !find_length(&cell)) {
        taken_[floor].missing = cell.why.empty() ? "not offered by this machine" : cell.why;
        return;
      }
      ways->push_back({floor, way, cell});
    }
  }

  /// False: the machine does not offer it. Blocks are shorter the more floors there are.
  bool find_length(perf::Cell* cell) {
    std::size_t all = 0;
    for (const PerfFloor& floor : floors_) all += floor.ways.size();
    const double wanted_ns =
        1e6 * std::clamp(kAllBlocksMs / (kBlocksOfAWay * static_cast<double>(all)),
                         kShortestBlockMs, kLongestBlockMs);
    for (std::uint64_t iterations = 1;; iterations *= 8) {
      look_for_stop();
      cell->request.iterations = iterations;
      const perf::Reply reply = pair_.run(cell->request, cell->name);
      if (reply.unavailable != 0) {
        cell->why = reply.message;
        return false;
      }
      if (reply.elapsed_ns < wanted_ns / 16) continue;
      const double scaled = static_cast<double>(iterations) * wanted_ns / reply.elapsed_ns;
      cell->request.iterations = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(scaled));
      return true;
    }
  }

  bool is_behind(double ns) const { return static_cast<double>(perf::now_ns() - start_) > ns; }
  bool is_late() const { return is_behind(kLateNs); }

  void look_for_stop() const {
    if (stop_.pending()) throw Stopped{};
  }

  std::span<const PerfFloor> floors_;
  const StopSignals& stop_;
  std::vector<PerfFloorTaken>& taken_;
  std::uint64_t start_ = perf::now_ns();
  perf::Pair pair_;
};

}  // namespace

std::vector<PerfFloorTaken> measure_floors(std::span<const PerfFloor> floors,
                                           const perf::CorePair& cores, const StopSignals& stop) {
  std::vector<PerfFloorTaken> taken(floors.size());
  for (std::size_t floor = 0; floor < floors.size(); ++floor) {
    taken[floor].ways.resize(floors[floor].ways.size());
    // Two that poll on one core wait for the kernel's clock.
    if (floors[floor].two_cores && cores.near == cores.far)
      taken[floor].missing = "there is only one core";
  }
  try {
    Meter(floors, cores, stop, &taken).measure();
  } catch (const std::exception& failure) {
    for (PerfFloorTaken& one : taken) {
      if (one.missing.empty()) one.missing = failure.what();
      for (perf::Blocks& blocks : one.ways) blocks = {};
    }
  }
  return taken;
}

}  // namespace verbatim::cli
