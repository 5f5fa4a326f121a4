// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_pattern_edges.hpp"

namespace verbatim::cli {
namespace {

std::vector<PatternEdge> halo(int ranks) {
  int rows = 1;
  for (int divisor = 1; divisor * divisor <= ranks; ++divisor) {
    if (ranks % divisor == 0) rows = divisor;
  }
  const int columns = ranks / rows;
  std::vector<PatternEdge> edges;
  const auto add = [&](int from, int row, int column) {
    const int to = (row + rows) % rows * columns + (column + columns) % columns;
    if (to != from) edges.push_back({from, to});
  };
  for (int rank = 0; rank < ranks; ++rank) {
    const int row = rank / columns, column = rank % columns;
    add(rank, row, column - 1);
    add(rank, row, column + 1);
    add(rank, row - 1, column);
    add(rank, row + 1, column);
  }
  return edges;
}

}  // namespace

std::optional<PerfPattern> perf_pattern_named(std::string_view name) {
  if (name == "pairs") return PerfPattern::kPairs;
  if (name == "incast") return PerfPattern::kIncast;
  if (name == "all-pairs") return PerfPattern::kAllPairs;
  if (name == "ring") return PerfPattern::kRing;
  if (name == "halo") return PerfPattern::kHalo;
  return {};
}

std::vector<PatternEdge> pattern_edges(PerfPattern pattern, int ranks) {
  std::vector<PatternEdge> edges;
  if (ranks < 2) return edges;
  switch (pattern) {
    case PerfPattern::kPairs:
      for (int rank = 0; rank < ranks / 2; ++rank) edges.push_back({rank, rank + ranks / 2});
      break;
    case PerfPattern::kIncast:
      for (int rank = 1; rank < ranks; ++rank) edges.push_back({rank, 0});
      break;
    case PerfPattern::kAllPairs:
      for (int from = 0; from < ranks; ++from) {
        for (int to = 0; to < ranks; ++to) {
          if (from != to) edges.push_back({from, to});
        }
      }
      break;
    case PerfPattern::kRing:
      for (int rank = 0; rank < ranks; ++rank) edges.push_back({rank, (rank + 1) % ranks});
      break;
    case PerfPattern::kHalo:
      return halo(ranks);
  }
  return edges;
}

}  // namespace verbatim::cli
