// SPDX-License-Identifier: BSD-2-Clause
// A straight line through costs over the logarithm of a number: the slope that a claim of O(1) is
// about. Any thread; pure.
#pragma once

#include <utility>
#include <vector>

namespace verbatim::perf {

struct Fit {
  double at_least = 0;     // the line at the smallest number
  double slope = 0;        // per doubling, as a part of at_least
  double slope_error = 0;  // standard error of it
  double growth = 0;       // the line at the largest number, as a part of at_least
  /// A doubling costs no more than this, or no more than what the fit cannot tell from nothing.
  bool is_flat() const { return slope <= kFlat || slope <= 2 * slope_error; }
  static constexpr double kFlat = 0.02;
};

/// (number, cost), at least three of distinct numbers above 0; otherwise all zero.
Fit fit_over_doublings(const std::vector<std::pair<double, double>>& points);

}  // namespace verbatim::perf
