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
  bool interrupted = false;
  std::string unreliable;  // why no claim can be made; empty: one can
};

const char* name_of(Unit unit);
const char* name_of(Section section);

/// The name of a curve: what was measured, without the size and the style of polling.
std::string curve_of(const Cell& cell);

/// How the run went: who measured between which cores, how often it was disturbed.
void print_head(std::FILE* out, const RunFacts& facts);
void print_tables(std::FILE* out, const RunFacts& facts, const std::deque<Group>& groups);
/// Floors by their numbers, each with its spread; those that were not measured with the reason.
void print_floor_table(std::FILE* out, const RunFacts& facts, const std::deque<Group>& groups);
/// One JSON object; tests/perf holds its schema.
void print_json(std::FILE* out, const RunFacts& facts, const std::deque<Group>& groups);

}  // namespace verbatim::perf
