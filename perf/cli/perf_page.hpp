// SPDX-License-Identifier: BSD-2-Clause
// One HTML page about one run, or about two that are compared: charts inside, nothing from the
// network, no script. Any thread; pure.
#pragma once

#include <string>
#include <vector>

#include "perf/support/record.hpp"

namespace verbatim::cli {

/// `base` is empty, or the run that `records` are compared with.
std::string perf_page(const std::vector<perf::Record>& records,
                      const std::vector<perf::Record>& base);

}  // namespace verbatim::cli
