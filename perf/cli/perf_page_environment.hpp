// SPDX-License-Identifier: BSD-2-Clause
// The part of a page that says where, when and how noisily its figures were measured.
#pragma once

#include <string>
#include <vector>

#include "perf/support/record.hpp"

namespace verbatim::cli {

/// Of all runs that the files have; `base` may be empty.
std::string environment_of(const std::vector<perf::Record>& records,
                           const std::vector<perf::Record>& base);

}  // namespace verbatim::cli
