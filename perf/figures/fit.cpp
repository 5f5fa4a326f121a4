// SPDX-License-Identifier: BSD-2-Clause
#include "perf/figures/fit.hpp"

#include <algorithm>
#include <cmath>

namespace verbatim::perf {

const char* name_of(Growth growth) {
  switch (growth) {
    case Growth::kFlat:
      return "O(1)";
    case Growth::kGrows:
      return "grows";
    case Growth::kNotTold:
      return "not told";
  }
  return "?";
}

Growth Fit::told() const {
  const double error = 2 * slope_error;
  if (at_least <= 0) return Growth::kNotTold;
  if (slope - error > kFlat) return Growth::kGrows;
  if (slope + error <= kFlat) return Growth::kFlat;
  if (error > kFlat) return Growth::kNotTold;
  return slope <= kFlat ? Growth::kFlat : Growth::kGrows;
}

Fit fit_over_doublings(const std::vector<std::pair<double, double>>& points) {
  Fit fit;
  if (points.size() < 3) return fit;
  const auto count = static_cast<double>(points.size());
  double mean_x = 0, mean_y = 0, least = 1e300, most = 0;
  for (const auto& [number, cost] : points) {
    if (number <= 0) return fit;
    mean_x += std::log2(number) / count;
    mean_y += cost / count;
    least = std::min(least, number);
    most = std::max(most, number);
  }
  double squares = 0, products = 0;
  for (const auto& [number, cost] : points) {
    const double away = std::log2(number) - mean_x;
    squares += away * away;
    products += away * (cost - mean_y);
  }
  if (squares <= 0) return fit;
  const double slope = products / squares;
  const auto line = [&](double number) { return mean_y + slope * (std::log2(number) - mean_x); };
  double residuals = 0;
  for (const auto& [number, cost] : points) {
    residuals += (cost - line(number)) * (cost - line(number));
  }
  fit.at_least = line(least);
  if (fit.at_least <= 0) return {};
  fit.slope = slope / fit.at_least;
  fit.slope_error = std::sqrt(residuals / (count - 2) / squares) / fit.at_least;
  fit.growth = line(most) / fit.at_least;
  return fit;
}

}  // namespace verbatim::perf
