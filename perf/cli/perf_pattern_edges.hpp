// SPDX-License-Identifier: BSD-2-Clause
// Who sends to whom in the patterns of `verbatim perf pattern`. Any thread; pure.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace verbatim::cli {

enum class PerfPattern { kPairs, kIncast, kAllPairs, kRing, kHalo };

struct PatternEdge {
  int from;
  int to;
  bool operator==(const PatternEdge&) const = default;
};

std::optional<PerfPattern> perf_pattern_named(std::string_view name);

/// In an order that is the same at every rank; empty where so many ranks have none of this pattern.
///
///   pairs      each rank of the first half to its fellow of the second; of an odd number one idles
///   incast     all others to rank 0
///   all-pairs  everybody to everybody
///   ring       each to the next, the last to the first
///   halo       a grid as square as it can be, closed at its borders: each to its four neighbours
std::vector<PatternEdge> pattern_edges(PerfPattern pattern, int ranks);

}  // namespace verbatim::cli
