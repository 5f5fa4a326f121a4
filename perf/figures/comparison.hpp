// SPDX-License-Identifier: BSD-2-Clause
// Two runs compared, figure by figure, by all their blocks. Any thread; pure.
#pragma once

#include <string>
#include <vector>

#include "perf/support/record.hpp"

namespace verbatim::perf {

enum class Change { kSame, kBetter, kWorse, kNotJudged };
const char* name_of(Change change);

struct Difference {
  Record base, fresh;
  double change = 0;  // of the median, as a part of the base's; what is worse depends on the unit
  double chance = 1;  // how likely blocks of one and the same distribution would differ so
  Change verdict = Change::kSame;
};

struct Comparison {
  std::vector<Difference> figures;   // of both, in the order of the base
  std::size_t lost = 0;              // of the base, which the new run does not have
  std::vector<std::string> missing;  // labels of what only one has
  std::string unreliable;            // why a run was not judged
};

/// Records of one figure are one with all their blocks, in the order of the file; those that were
/// not measured stay as they are.
std::vector<Record> pooled(const std::vector<Record>& records);

/// Records of one figure in one file are one figure with all their blocks.
Comparison compare(const std::vector<Record>& base, const std::vector<Record>& fresh,
                   double tolerance);

/// The two-sided probability of Mann and Whitney, by the normal approximation with ties; 1 where
/// either has fewer than five, of which nothing can be said.
double chance_of_difference(const Blocks& one, const Blocks& other);

/// Below it a difference is none of chance.
inline constexpr double kSignificant = 0.01;

}  // namespace verbatim::perf
