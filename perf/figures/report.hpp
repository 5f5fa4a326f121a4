// SPDX-License-Identifier: BSD-2-Clause
// The results of the main job, for people and for programs.
#pragma once

#include <cstdio>
#include <deque>
#include <string>

#include "perf/figures/cell.hpp"
#include "perf/support/affinity.hpp"

namespace verbatim::perf {

struct RunFacts {
  std::string processor;
  CorePair cores;
  std::size_t rounds = 0;  // of the group that had the fewest
  double block_ms = 0;
  double seconds = 0;
  int retaken = 0;
  int disturbed = 0;
};

void print_tables(std::FILE* out, const RunFacts& facts, const std::deque<Group>& groups);
/// One JSON object; tests/perf holds its schema.
void print_json(std::FILE* out, const RunFacts& facts, const std::deque<Group>& groups);

}  // namespace verbatim::perf
