// SPDX-License-Identifier: BSD-2-Clause
#include <cmath>

#include "perf/figures/report.hpp"
#include "perf/figures/run.hpp"
#include "perf/support/arguments.hpp"

namespace verbatim::perf {

std::string curve_of(const Cell& cell) {
  const Request& request = cell.request;
  if (cell.variant_of == "f1") return "cache line from core to core";
  if (cell.variant_of == "f1 read-only") return "cache line that who polls it may not write";
  if (cell.section == Section::kFloor || cell.section == Section::kMpi) {
    // Those of MPI end with their size.
    const std::string size = " " + size_text(request.size);
    return cell.name.ends_with(size) ? cell.name.substr(0, cell.name.size() - size.size())
                                     : cell.name;
  }
  std::string name;
  if (cell.section == Section::kBandwidth) {
    name = request.kind == Kind::kTrain ? "fresh " : "stream ";
  }
  name.append(name_of(request.operation)).append(" ").append(name_of(request.memory));
  if (request.service != Service::kReliable) name.append(" ").append(name_of(request.service));
  if (request.waiting == Waiting::kYield) name.append(" yielding");
  if (request.waiting == Waiting::kAdaptive) name.append(" adaptive");
  if (request.batch > 1) name.append(" in lists of ").append(std::to_string(request.batch));
  if (request.calls != Calls::kClassic) name.append(" by ").append(name_of(request.calls));
  return name;
}

void add_records(const Group& group, const RunAbout& about, std::vector<Record>& records) {
  for (const Cell& cell : group.cells) {
    if (!cell.unavailable && !group.is_shown(cell)) continue;
    Record record;
    record.about = about;
    record.kind = name_of(cell.section);
    record.name = curve_of(cell);
    record.floor = cell.number;
    record.at = cell.request.size;
    record.unit = name_of(cell.unit);
    if (cell.unavailable) {
      record.missing = cell.why.empty() ? "not offered by this machine" : cell.why;
      records.push_back(std::move(record));
      continue;
    }
    record.blocks = cell.blocks;
    if (cell.unit == Unit::kNanoseconds) record.levels = levels_of(cell.stamps, cell.ns_per_stamp);
    if (const Cell* floor = group.floor_of(cell); floor != nullptr) {
      record.reference = curve_of(*floor);
      record.reference_median = floor->blocks.median();
      record.ratio = group.ratio_of(cell);
    }
    if (cell.operations > 0) {
      record.cpu_ns = cell.cpu_ns / cell.operations;
      record.switches = cell.switches / cell.operations;
    }
    record.system_calls = cell.system_calls;
    records.push_back(std::move(record));
  }
}

}  // namespace verbatim::perf
