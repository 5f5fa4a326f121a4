// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_floor_meter.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

#include "perf/figures/cell.hpp"
#include "perf/support/clock.hpp"

namespace verbatim::cli {
namespace {

constexpr int kRounds = 3;
// Each way also takes what two blocks or so take, to warm up and to find their length.
constexpr double kBlocksOfAWay = kRounds + 2;
constexpr double kAllBlocksMs = 60, kLongestBlockMs = 2, kShortestBlockMs = 0.1;
// Of the largest messages too.
constexpr std::uint64_t kFewestOfABlock = 4;
constexpr std::uint64_t kToWarmUp = 2;
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
        warm_up(way.cell);
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
      // The pages of freshly started processes come with it.
      warm_up(cell);
      cell.request.iterations = iterations;
      if (way == 0)
        perf::calibrate([this](const perf::Request& request,
                               const std::string& what) { return ask(request, what); },
                        cell, block_ms());
      if (cell.unavailable) {
        taken_[floor].missing = cell.why.empty() ? "not offered by this machine" : cell.why;
        return;
      }
      cell.request.iterations = std::max(cell.request.iterations, kFewestOfABlock);
      ways->push_back({floor, way, cell});
    }
  }

  /// What has run in between has left its own in the caches, which a test of many messages does not
  /// see: not timed.
  void warm_up(const perf::Cell& cell) {
    perf::Request request = cell.request;
    request.iterations = std::min(request.iterations, kToWarmUp);
    (void)ask(request, cell.name);
  }

  perf::Reply ask(const perf::Request& request, const std::string& what) {
    look_for_stop();
    return pair_.run(request, what);
  }

  /// The shorter the more floors there are.
  double block_ms() const {
    std::size_t all = 0;
    for (const PerfFloor& floor : floors_) all += floor.ways.size();
    return std::clamp(kAllBlocksMs / (kBlocksOfAWay * static_cast<double>(all)), kShortestBlockMs,
                      kLongestBlockMs);
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
