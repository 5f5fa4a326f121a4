// SPDX-License-Identifier: BSD-2-Clause
// Statistics over many short blocks. Neighbours disturb a measurement upwards only, so the minimum
// is what the machine can do and the median what it did; a mean would report the neighbours. Ratios
// are taken between blocks of the same round, since the machine drifts between rounds by more than
// the differences we look for.
#pragma once

#include <cstddef>
#include <vector>

namespace verbatim::perf {

class Blocks {
 public:
  Blocks() = default;
  explicit Blocks(std::vector<double> values) : values_(std::move(values)) {}

  void add(double value) { values_.push_back(value); }
  bool empty() const { return values_.empty(); }
  std::size_t size() const { return values_.size(); }
  const std::vector<double>& values() const { return values_; }

  /// All of these answer NaN when empty.
  double min() const;
  double max() const;
  double median() const { return quantile(0.5); }
  /// Linear interpolation between the two nearest order statistics; `fraction` in [0, 1].
  double quantile(double fraction) const;
  /// Distance between the quartiles, as a part of the median: the spread we print.
  double spread() const;
  double mean() const;
  /// Of the mean: how far another run's would lie, were all blocks independent. NaN below two.
  double standard_error() const;

 private:
  std::vector<double> values_;
};

/// value[i] / floor[i] for each round both have; the verdict is the median of it.
Blocks paired_ratio(const Blocks& value, const Blocks& floor);

}  // namespace verbatim::perf
