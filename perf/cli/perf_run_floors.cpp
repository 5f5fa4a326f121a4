// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_run_floors.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "perf/support/arguments.hpp"
#include "perf/support/table.hpp"

namespace verbatim::cli {
namespace {

/// Each block beside what the floor was at the time nearer to it.
perf::Blocks ratio_of(const perf::Blocks& tested, const perf::Blocks& before,
                      const perf::Blocks& behind) {
  perf::Blocks ratio;
  const double first = before.empty() ? behind.median() : before.median();
  const double last = behind.empty() ? before.median() : behind.median();
  if (!(first > 0) || !(last > 0)) return ratio;
  for (std::size_t i = 0; i < tested.size(); ++i) {
    ratio.add(tested.values()[i] / (2 * i < tested.size() ? first : last));
  }
  return ratio;
}

void add_all(perf::Blocks* to, const perf::Blocks& from) {
  for (const double value : from.values()) to->add(value);
}

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "this host";
}

/// Where a floor was not taken at the size of the test.
std::string other_size(const PerfFloor& floor, std::uint32_t size) {
  const perf::Kind kind = floor.ways.front().kind;
  const bool has_size = kind != perf::Kind::kHandover && kind != perf::Kind::kEventPingPong;
  if (!has_size || floor.size() == size) return "";
  return ", " + std::to_string(floor.size()) + " bytes";
}

PerfHeld held_of(const PerfOptions& options) {
  const std::string kind = options.test.latency() ? "latency" : "bandwidth";
  return {kind, options.test.latency(), options.gbits, options.ends != PerfEnds::kOne,
          "test/floor of a " + kind + " is normally " +
              (options.test.latency() ? "above" : "below") + " 1"};
}

perf::Json number(double value) {
  return std::isfinite(value) ? perf::Json(value) : perf::Json(nullptr);
}

}  // namespace

PerfRunFloors::PerfRunFloors(const PerfOptions& options, PerfFloorPlan plan, perf::CorePair cores)
    : PerfRunFloors(held_of(options), std::move(plan), std::move(cores)) {}

PerfRunFloors::PerfRunFloors(PerfHeld held, PerfFloorPlan plan, perf::CorePair cores)
    : held_{std::move(held)}, plan_{std::move(plan)}, cores_{std::move(cores)} {}

void PerfRunFloors::take(const StopSignals& stop) {
  add(measure_floors(plan_.floors, cores_, stop));
}

void PerfRunFloors::add(std::vector<PerfFloorTaken> taken) { times_.push_back(std::move(taken)); }

void PerfRunFloors::lack(const std::string& why) {
  std::vector<PerfFloorTaken> taken;
  for (const PerfFloor& floor : plan_.floors)
    taken.push_back({std::vector<perf::Blocks>(floor.ways.size()), 0, why});
  add(std::move(taken));
}

PerfRunFloors::Figure PerfRunFloors::figure_of(std::size_t floor) const {
  Figure best;
  std::size_t blocks = 0, disturbed = 0;
  for (const std::vector<PerfFloorTaken>& time : times_) {
    for (const perf::Blocks& way : time[floor].ways) blocks += way.size();
    disturbed += time[floor].disturbed;
  }
  const bool least = plan_.floors[floor].is_time;
  for (std::size_t way = 0; way < plan_.floors[floor].ways.size(); ++way) {
    Figure one;
    for (std::size_t time = 0; time < times_.size(); ++time) {
      const PerfFloorTaken& taken = times_[time][floor];
      if (!taken.missing.empty()) best.missing = taken.missing;
      add_all(time == 0 ? &one.before : &one.behind, taken.ways[way]);
      add_all(&one.all, taken.ways[way]);
    }
    if (one.all.empty()) continue;
    if (best.all.empty() || (one.all.median() < best.all.median()) == least) best = std::move(one);
  }
  // One that was there at one time is there.
  if (!best.all.empty()) best.missing.clear();
  if (best.all.empty() && best.missing.empty()) best.missing = "not measured";
  best.disturbed = 2 * disturbed > blocks;
  return best;
}

const PerfFloorsOfSize* PerfRunFloors::floors_of(const perf::Record& record) const {
  if (record.kind != held_.kind) return nullptr;
  const auto found = std::ranges::find_if(
      plan_.sizes, [&](const PerfFloorsOfSize& one) { return one.size == record.at; });
  return found == plan_.sizes.end() ? nullptr : &*found;
}

/// The tightest: of times the longest, of bandwidths the least. Of ways to choose from the best.
std::optional<std::size_t> PerfRunFloors::limit_of(const PerfFloorsOfSize& size) const {
  std::optional<std::size_t> limit, way;
  const auto median = [this](std::size_t floor) { return figure_of(floor).all.median(); };
  const auto is_longer = [&](std::size_t one, std::size_t other) {
    return (median(one) > median(other)) == plan_.floors[one].is_time;
  };
  for (const PerfFloorOfSize& line : size.lines) {
    if (line.limit != PerfLimit::kOneOf || figure_of(line.floor).all.empty()) continue;
    if (!way || is_longer(*way, line.floor)) way = line.floor;
  }
  for (const PerfFloorOfSize& line : size.lines) {
    if (line.limit == PerfLimit::kNone || figure_of(line.floor).all.empty()) continue;
    if (line.limit == PerfLimit::kOneOf && line.floor != way) continue;
    if (!limit || is_longer(line.floor, *limit)) limit = line.floor;
  }
  return limit;
}

void PerfRunFloors::hold(perf::Record* record) const {
  const PerfFloorsOfSize* const size = floors_of(*record);
  if (size == nullptr) return;
  const std::optional<std::size_t> limit = limit_of(*size);
  if (!limit) return;
  const Figure figure = figure_of(*limit);
  record->reference = plan_.floors[*limit].name;
  record->reference_median = figure.all.median();
  record->ratio = ratio_of(record->blocks, figure.before, figure.behind);
}

std::vector<perf::Record> PerfRunFloors::records() const {
  std::vector<perf::Record> all;
  for (std::size_t floor = 0; floor < plan_.floors.size(); ++floor) {
    Figure figure = figure_of(floor);
    perf::Record record;
    record.kind = "floor";
    record.name = plan_.floors[floor].name;
    record.floor = plan_.floors[floor].number;
    record.at = plan_.floors[floor].size();
    record.unit = plan_.floors[floor].is_time ? "ns" : "GB/s";
    record.missing = figure.missing;
    record.blocks = std::move(figure.all);
    all.push_back(std::move(record));
  }
  return all;
}

double PerfRunFloors::spread() const {
  for (std::size_t floor = 0; floor < plan_.floors.size(); ++floor) {
    const Figure figure = figure_of(floor);
    if (!figure.all.empty()) return figure.all.spread();
  }
  return std::numeric_limits<double>::quiet_NaN();
}

std::vector<PerfRunFloors::Row> PerfRunFloors::rows(const std::vector<perf::Record>& tested) const {
  std::vector<Row> all;
  for (const PerfFloorsOfSize& size : plan_.sizes) {
    const std::optional<std::size_t> limit = limit_of(size);
    for (const PerfFloorOfSize& line : size.lines) {
      Row row{&size, &plan_.floors[line.floor], figure_of(line.floor), line.floor == limit, {}, {}};
      for (const perf::Record& record : tested) {
        if (floors_of(record) != &size) continue;
        row.tested = record.blocks;
        if (line.limit != PerfLimit::kNone)
          row.ratio = ratio_of(record.blocks, row.figure.before, row.figure.behind);
      }
      all.push_back(std::move(row));
    }
  }
  return all;
}

std::string PerfRunFloors::missing() const {
  std::string why;
  for (std::size_t floor = 0; floor < plan_.floors.size(); ++floor) {
    const Figure figure = figure_of(floor);
    if (!figure.all.empty()) return "";
    if (why.empty()) why = figure.missing;
  }
  return why;
}

std::string PerfRunFloors::title() const {
  const std::string between = "between CPU " + std::to_string(cores_.near) + " and CPU " +
                              std::to_string(cores_.far) + " (" + cores_.note + "), taken before ";
  if (!held_.has_both_ends) {
    return "# Floors of host " + host_name() + " alone, " + between +
           "the test: no ratio, since the test concerns two ends that were started apart";
  }
  return "# Floors of this run, " + between + (times_.size() > 1 ? "and behind " : "") +
         "the test; <- the tightest, which records have the ratio to";
}

/// As the columns of the test have them, but that cycles are no unit of bandwidths or of records.
double PerfRunFloors::in_units(double value) const {
  if (held_.is_time) return value / 1e3;
  return held_.gbits ? value * 8 : value * 1e9 / 1048576;
}

void PerfRunFloors::print(const std::vector<perf::Record>& tested, perf::Noise noise) const {
  print_rows(tested);
  noise.floor_spread = spread();
  const std::string why = noise.unreliable();
  if (!why.empty()) std::printf("# unreliable: %s\n", why.c_str());
}

void PerfRunFloors::print_rows(const std::vector<perf::Record>& tested) const {
  if (const std::string why = missing(); !why.empty()) {
    std::printf("# Floors of this run: none (%s)\n", why.c_str());
    return;
  }
  const bool has_ratios = held_.has_both_ends;
  std::printf("%s\n", title().c_str());
  std::vector<std::string> headings = {"<#", "#bytes", "<floor", "floor", "<", "spread"};
  if (has_ratios) headings.insert(headings.end(), {"test", "<", "test/floor", "<"});
  perf::Table table(headings);
  for (const Row& row : rows(tested)) {
    const std::string number = row.floor->number.empty() ? "" : row.floor->number + " ";
    // Of two hosts a floor is not in the units of the test.
    const bool as_test = has_ratios && row.floor->is_time == held_.is_time;
    const double scale = row.figure.all.median();
    const std::string unit = !as_test        ? row.floor->is_time ? "ns" : "GB/s"
                             : held_.is_time ? "usec"
                             : held_.gbits   ? "Gb/sec"
                                             : "MB/sec";
    std::vector<std::string> cells = {
        "#",
        std::to_string(has_ratios ? row.of->size : row.floor->size()),
        number + row.floor->name + (has_ratios ? other_size(*row.floor, row.of->size) : ""),
        perf::number_text(as_test ? in_units(scale) : scale),
        unit,
        perf::percent_text(row.figure.all.spread())};
    if (has_ratios) {
      const double median = as_test ? row.tested.median() : std::nan("");
      cells.insert(cells.end(),
                   {perf::number_text(in_units(median)), std::isnan(median) ? "" : unit,
                    perf::fixed_text(row.ratio.median(), 2)});
    }
    if (row.figure.disturbed) cells[2] += " (disturbed)";
    if (!row.figure.missing.empty())
      cells[2] += " (" + row.figure.missing + ")";
    else if (has_ratios && row.is_limit)
      cells.push_back("<-");
    table.add(std::move(cells));
  }
  table.print(stdout);
  if (has_ratios) std::printf("# %s\n", held_.note.c_str());
}

perf::Json PerfRunFloors::json(const std::vector<perf::Record>& tested) const {
  perf::Json all = perf::Json::array();
  for (const Row& row : rows(tested)) {
    perf::Json one = {{"floor", row.floor->number},
                      {"name", row.floor->name},
                      {"size", row.floor->size()},
                      {"unit", row.floor->is_time ? "ns" : "GB/s"},
                      {"median", number(row.figure.all.median())},
                      {"spread", number(row.figure.all.spread())},
                      {"blocks", row.figure.all.size()}};
    if (!row.figure.missing.empty()) one["missing"] = row.figure.missing;
    if (row.figure.disturbed) one["disturbed"] = true;
    if (held_.has_both_ends) {
      one["MsgSize"] = row.of->size;
      one["tightest"] = row.is_limit;
      one["test"] = number(row.tested.median());
      one["ratio"] = number(row.ratio.median());
    } else {
      one["host"] = host_name();
    }
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace verbatim::cli
