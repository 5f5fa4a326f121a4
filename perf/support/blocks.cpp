// SPDX-License-Identifier: BSD-2-Clause
#include "perf/support/blocks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace verbatim::perf {
namespace {
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
}

double Blocks::min() const {
  return empty() ? kNothing : *std::min_element(values_.begin(), values_.end());
}

double Blocks::max() const {
  return empty() ? kNothing : *std::max_element(values_.begin(), values_.end());
}

double Blocks::quantile(double fraction) const {
  if (empty()) return kNothing;
  std::vector<double> sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  const double at = std::clamp(fraction, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double Blocks::spread() const {
  const double middle = median();
  return middle == 0 ? 0 : (quantile(0.75) - quantile(0.25)) / middle;
}

double Blocks::mean() const {
  double sum = 0;
  for (const double value : values_) sum += value;
  return empty() ? kNothing : sum / static_cast<double>(size());
}

double Blocks::standard_error() const {
  if (size() < 2) return kNothing;
  const double middle = mean();
  double squares = 0;
  for (const double value : values_) squares += (value - middle) * (value - middle);
  const auto count = static_cast<double>(size());
  return std::sqrt(squares / (count - 1) / count);
}

Blocks paired_ratio(const Blocks& value, const Blocks& floor) {
  Blocks ratio;
  const std::size_t rounds = std::min(value.size(), floor.size());
  for (std::size_t i = 0; i < rounds; ++i) {
    if (floor.values()[i] > 0) ratio.add(value.values()[i] / floor.values()[i]);
  }
  return ratio;
}

}  // namespace verbatim::perf
