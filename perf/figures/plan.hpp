// SPDX-License-Identifier: BSD-2-Clause
// What the main job measures, and in which company.
#pragma once

#include <cstdint>
#include <vector>

#include "perf/figures/cell.hpp"

namespace verbatim::perf {

struct PlanOptions {
  std::vector<std::uint64_t> sizes;  // 8 B .. 4 MiB
  bool floors_only = false;
};

/// Of the rates of 8 bytes: what an extended verb costs at least.
inline constexpr const char* kEmptyCall = "empty call";

/// Latency by size, then message rate, then bandwidth by size, then MPI.
std::deque<Group> make_plan(const PlanOptions& options);

/// F1 to F13 under their numbers; what cannot be measured here is unavailable, and says why.
std::deque<Group> make_floor_plan();

/// The four hand-over styles: the variants of "f1".
void add_handovers(Group& group);

}  // namespace verbatim::perf
