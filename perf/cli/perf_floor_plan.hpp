// SPDX-License-Identifier: BSD-2-Clause
// Which floors of the machine a test of `verbatim perf` is held against, for each of its sizes. Any
// thread; pure.
//
// Where this host has both ends, a floor is a limit if no message of the test can undercut it: the
// tightest limit is what the result is held against. Of two hosts each end knows its own floors
// only, and none of them limits a message between the two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "perf/cli/perf_options.hpp"
#include "perf/ends/request.hpp"

namespace verbatim::cli {

/// One floor, under the name that it has in all records.
struct PerfFloor {
  std::string number;  // in the list of floors: "F4"; empty: it has none
  std::string name;
  bool is_time = true;  // nanoseconds of one; else GB/s
  bool two_cores = false;
  std::vector<perf::Request> ways;  // the best one stands for it

  std::uint64_t size() const { return ways.front().size; }
};

enum class PerfLimit : unsigned char {
  kNone,    // shown beside the test, which it does not limit
  kAlways,  // every message is at least this
  kOneOf,   // a message takes one of the ways that are called so: the best of them limits it
};

struct PerfFloorOfSize {
  std::size_t floor;  // its place in PerfFloorPlan::floors
  PerfLimit limit;
};

struct PerfFloorsOfSize {
  std::uint32_t size;
  std::vector<PerfFloorOfSize> lines;
};

struct PerfFloorPlan {
  std::vector<PerfFloor> floors;
  std::vector<PerfFloorsOfSize> sizes;  // of a test between two hosts: one, of no size
};

/// `by_memory`: the device moves messages through this host's memory, not through its kernel's
/// network or an adapter.
PerfFloorPlan plan_floors(const PerfOptions& options, bool by_memory,
                          const std::vector<std::uint32_t>& sizes);

/// A size of a collective, as its records name it, and how many bytes of others a rank waits for.
struct PerfFloorOfCollective {
  std::uint32_t size;
  std::uint64_t moved;
};

/// Of a collective between ranks of this host, in time: a rank that waits for another waits for one
/// of its cache lines, and for what is moved as long as one copy of it takes.
PerfFloorPlan plan_collective_floors(std::span<const PerfFloorOfCollective> sizes);

}  // namespace verbatim::cli
