// SPDX-License-Identifier: BSD-2-Clause
// One line of the comparison: a figure, its target, and whether it is met.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "perf/support/affinity.hpp"
#include "perf/support/blocks.hpp"
#include "perf/support/record.hpp"

namespace verbatim::perf {

enum class Sense { kAtMost, kAtLeast, kShown };  // kShown: no target, for the reader

struct Verdict {
  std::string row;     // "R1", "memory", ...
  std::string figure;  // what is compared with what
  std::string unit;    // "x" for ratios
  Sense sense = Sense::kShown;
  double target = 0;
  Blocks values;           // the median decides
  std::string detail;      // absolute numbers
  std::string missing;     // why there is no value: not installed, not offered by this machine
  bool disturbed = false;  // others had the cores: a value, but no ground for a verdict
  std::string of = {};     // of a ratio: the unit of the two

  /// A time or a rate by itself says as much about the host as about us: it is shown.
  bool is_absolute() const;
  bool judged() const {
    return sense != Sense::kShown && !is_absolute() && missing.empty() && !values.empty() &&
           !disturbed;
  }
  bool passes() const;
  /// Of one that is shown without a target it follows from what is measured.
  bool less_is_better() const;
  /// "pass", "short", "disturbed", "shown" (no target, or no ratio) or "not measurable here".
  std::string word() const;
};

/// Each as a record of kind "compare", whose blocks are the values.
std::vector<Record> records_of(const std::vector<Verdict>& verdicts, const RunAbout& about);

/// How many figures there are of each verdict, of those that there are, and in which rows.
struct Summary {
  struct Count {
    std::string verdict;
    std::size_t figures = 0;
    std::string rows;  // "R1, R2 (3), mpi (20)"
  };
  std::vector<Count> counts;
};
Summary summary_of(const std::vector<Verdict>& verdicts);
void print_summary(std::FILE* out, const std::vector<Verdict>& verdicts);

void print_verdicts(std::FILE* out, const std::vector<Verdict>& verdicts);
void print_verdicts_json(std::FILE* out, const std::string& processor, const CorePair& cores,
                         int disturbed, const std::vector<Verdict>& verdicts);

}  // namespace verbatim::perf
