// SPDX-License-Identifier: BSD-2-Clause
// The rows of the table of targets: R1 to R20, then those that have a word for a name, and which
// group of probes measures which. A group may be asked for by its own name, too. Any thread; pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perf/peers/verdict.hpp"

namespace verbatim::perf {

class Bench;

struct RowGroup {
  void (*judge)(Bench&);
  std::string_view name;               // with --rows: all of its rows; empty: each by itself
  std::vector<std::string_view> rows;  // that it may yield
};

const std::vector<RowGroup>& row_groups();

/// All names that may be asked for, with commas between.
std::string row_names();
/// "mpi" is all rows of that group. Throws std::invalid_argument for a name that there is not.
std::vector<std::string> expanded_rows(const std::vector<std::string>& asked);

/// In the order of the table: R1 to R20, then the others as they came.
void sort_rows(std::vector<Verdict>& verdicts);

}  // namespace verbatim::perf
