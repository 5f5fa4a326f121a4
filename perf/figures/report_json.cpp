// SPDX-License-Identifier: BSD-2-Clause
#include <cmath>
#include <utility>

#include "perf/figures/report.hpp"
#include "perf/support/json.hpp"

namespace verbatim::perf {

const char* name_of(Unit unit) {
  switch (unit) {
    case Unit::kNanoseconds:
      return "ns";
    case Unit::kMillionPerSecond:
      return "million/s";
    case Unit::kGigabytesPerSecond:
      return "GB/s";
  }
  return "?";
}

const char* name_of(Section section) {
  switch (section) {
    case Section::kFloor:
      return "floor";
    case Section::kLatency:
      return "latency";
    case Section::kRate:
      return "rate";
    case Section::kBandwidth:
      return "bandwidth";
    case Section::kMpi:
      return "mpi";
  }
  return "?";
}

namespace {

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json summary(const Blocks& blocks) {
  return {{"median", number(blocks.median())},
          {"min", number(blocks.min())},
          {"max", number(blocks.max())},
          {"spread", number(blocks.spread())},
          {"blocks", blocks.size()}};
}

Json cell_json(const Group& group, const Cell& cell) {
  Json json = {
      {"name", cell.name}, {"section", name_of(cell.section)}, {"size", cell.request.size}};
  if (cell.section == Section::kMpi) {
    json["memory"] = verbatim::perf::name_of(cell.request.memory);
  } else if (cell.section != Section::kFloor) {
    json["operation"] = verbatim::perf::name_of(cell.request.operation);
    json["memory"] = verbatim::perf::name_of(cell.request.memory);
    json["list"] = cell.request.batch;
    json["service"] = verbatim::perf::name_of(cell.request.service);
    json["calls"] = verbatim::perf::name_of(cell.request.calls);
    json["waiting"] = verbatim::perf::name_of(cell.request.waiting);
  }
  if (!cell.variant_of.empty()) {
    json["variant_of"] = cell.variant_of;
    json["best"] = group.is_shown(cell);
  }
  json["unit"] = name_of(cell.unit);
  json["available"] = !cell.unavailable;
  if (cell.unavailable) return json;
  json["value"] = summary(cell.blocks);
  if (cell.operations > 0) {
    json["cpu_ns"] = number(cell.cpu_ns / cell.operations);
    json["switches"] = number(cell.switches / cell.operations);
    json["system_calls"] = number(cell.system_calls);
  }
  if (cell.stamps.count() != 0) {
    for (const auto& [name, fraction] :
         {std::pair("p50", 0.5), std::pair("p90", 0.9), std::pair("p99", 0.99),
          std::pair("p99.9", 0.999), std::pair("p99.99", 0.9999)}) {
      json[name] = number(cell.percentile_ns(fraction));
    }
  }
  if (const Cell* floor = group.floor_of(cell)) {
    json["floor"] = {{"name", floor->name}, {"median", number(floor->blocks.median())}};
    json["ratio"] = summary(group.ratio_of(cell));
  }
  return json;
}

}  // namespace

void print_json(std::FILE* out, const RunFacts& facts, const std::deque<Group>& groups) {
  Json figures = Json::array();
  for (const Group& group : groups) {
    for (const Cell& cell : group.cells) figures.push_back(cell_json(group, cell));
  }
  const Json all = {{"format", "verbatim-perf-1"},
                    {"processor", facts.processor},
                    {"cores",
                     {{"near", facts.cores.near},
                      {"far", facts.cores.far},
                      {"distinct", facts.cores.distinct},
                      {"note", facts.cores.note}}},
                    {"rounds", facts.rounds},
                    {"block_ms", facts.block_ms},
                    {"seconds", facts.seconds},
                    {"retaken", facts.retaken},
                    {"disturbed", facts.disturbed},
                    {"interrupted", facts.interrupted},
                    {"unreliable", facts.unreliable},
                    {"figures", figures}};
  std::fprintf(out, "%s\n", all.text().c_str());
}

}  // namespace verbatim::perf
