// SPDX-License-Identifier: BSD-2-Clause
// A straight line through costs over the logarithm of a number: the slope that a claim of O(1) is
// about. Any thread; pure.
#pragma once

#include <utility>
#include <vector>

namespace verbatim::perf {

/// What is known of a slope.
enum class Growth { kFlat, kGrows, kNotTold };
/// "O(1)", "grows", "not told".
const char* name_of(Growth growth);

struct Fit {
  double at_least = 0;     // the line at the smallest number
  double slope = 0;        // per doubling, as a part of at_least
  double slope_error = 0;  // standard error of it
  double growth = 0;       // the line at the largest number, as a part of at_least
  /// Flat: a doubling costs no more than kFlat. Not told: twice the error is more than that, and the
  /// slope may be on either side of it; or there is no line.
  Growth told() const;
  static constexpr double kFlat = 0.02;
};

/// (number, cost), at least three of distinct numbers above 0; otherwise all zero.
Fit fit_over_doublings(const std::vector<std::pair<double, double>>& points);

}  // namespace verbatim::perf
