// SPDX-License-Identifier: BSD-2-Clause
#include "perf/peers/rows.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "perf/peers/bench.hpp"

namespace verbatim::perf {
namespace {

/// Behind all that have a number.
constexpr int kNoNumber = 1000;

int number_of(const std::string& row) {
  if (row.size() < 2 || row[0] != 'R') return kNoNumber;
  return std::atoi(row.c_str() + 1);
}

}  // namespace

const std::vector<RowGroup>& row_groups() {
  static const std::vector<RowGroup> kGroups = {
      {judge_latency, "", {"R1", "R2", "R3"}},
      {judge_rate, "", {"R5"}},
      {judge_sizes, "sizes", {"R15", "sizes"}},
      {judge_bandwidth, "", {"R6", "R7"}},
      {judge_pages, "", {"pages"}},
      {judge_polling, "", {"R8"}},
      {judge_sleeping, "", {"R10"}},
      {judge_setup, "", {"R13"}},
      {judge_topology, "", {"R13"}},
      {judge_memory, "memory", {"R14", "R16", "memory"}},
      {judge_many, "", {"R17"}},
      {judge_one_core, "", {"R18"}},
      {judge_allocation, "", {"alloc"}},
      {judge_served, "", {"served"}},
      {judge_mpi, "mpi", {"R4", "R9", "R11", "R12", "mpi"}},
      {judge_dropin, "dropin", {"R19", "R20", "dropin"}},
      {judge_kernel, "", {"kernel"}},
  };
  return kGroups;
}

std::string row_names() {
  std::vector<std::string> names;
  for (const RowGroup& group : row_groups()) {
    for (const std::string_view row : group.rows) {
      if (std::ranges::find(names, row) == names.end()) names.emplace_back(row);
    }
  }
  std::ranges::stable_sort(names, {}, number_of);
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ",") + name;
  return all;
}

std::vector<std::string> expanded_rows(const std::vector<std::string>& asked) {
  std::vector<std::string> rows;
  for (const std::string& name : asked) {
    bool known = false;
    for (const RowGroup& group : row_groups()) {
      for (const std::string_view row : group.rows) {
        if (name != row && (group.name.empty() || name != group.name)) continue;
        known = true;
        rows.emplace_back(row);
      }
    }
    if (!known) throw std::invalid_argument("there is no row '" + name + "'");
  }
  return rows;
}

void sort_rows(std::vector<Verdict>& verdicts) {
  std::ranges::stable_sort(verdicts, {}, [](const Verdict& one) { return number_of(one.row); });
}

}  // namespace verbatim::perf
