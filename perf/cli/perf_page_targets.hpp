// SPDX-License-Identifier: BSD-2-Clause
// The part of a report that has what a comparison found: each figure beside its target. Any thread;
// pure.
#pragma once

#include <string>
#include <vector>

#include "perf/support/record.hpp"

namespace verbatim::cli {

/// HTML; empty when no record is of a comparison.
std::string targets_section(const std::vector<perf::Record>& records);

}  // namespace verbatim::cli
