// SPDX-License-Identifier: BSD-2-Clause
// One line of the comparison: a figure, its target, and whether it is met.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "perf/support/affinity.hpp"
#include "perf/support/blocks.hpp"

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

  /// A time or a rate by itself says as much about the host as about us: it is shown.
  bool is_absolute() const;
  bool judged() const {
    return sense != Sense::kShown && !is_absolute() && missing.empty() && !values.empty() &&
           !disturbed;
  }
  bool passes() const;
  /// "pass", "short", "disturbed", "shown" (no target, or no ratio) or "not measurable here".
  std::string word() const;
};

void print_verdicts(std::FILE* out, const std::vector<Verdict>& verdicts);
void print_verdicts_json(std::FILE* out, const std::string& processor, const CorePair& cores,
                         int disturbed, const std::vector<Verdict>& verdicts);

}  // namespace verbatim::perf
