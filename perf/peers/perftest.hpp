// SPDX-License-Identifier: BSD-2-Clause
// What perftest's programs print, and ours under their names. Any thread; pure.
#pragma once

#include <string>

namespace verbatim::perf {

// Columns of a latency's and of a bandwidth's row, counted from 0.
inline constexpr int kTypicalLatency = 4, kAverageLatency = 5, kAverageBandwidth = 3;
/// GB/s of a MiB/s.
inline constexpr double kMebibytes = 1048576 / 1e9;

/// A column of the last row. Some cells may be "-nan". Throws std::runtime_error: there is no row.
double perftest_column(const std::string& text, int column);

}  // namespace verbatim::perf
