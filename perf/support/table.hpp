// SPDX-License-Identifier: BSD-2-Clause
// A plain text table: the first columns' text to the left, numbers to the right, widths from the
// content.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace verbatim::perf {

class Table {
 public:
  /// A heading that starts with '<' makes a left-aligned column; others are right-aligned.
  explicit Table(std::vector<std::string> headings);

  /// Missing cells are empty; more cells than headings are a programming error.
  void add(std::vector<std::string> cells);
  /// An empty line between groups of rows.
  void add_gap() { rows_.emplace_back(); }
  void print(std::FILE* out) const;

 private:
  std::vector<std::string> headings_;
  std::vector<bool> left_;
  std::vector<std::vector<std::string>> rows_;
};

/// Three or four significant digits, "-" for NaN: what a reader can compare.
std::string number_text(double value);
/// Fixed number of decimals, "-" for NaN.
std::string fixed_text(double value, int decimals);
/// "+-7 %" of a relative spread, "-" for NaN.
std::string percent_text(double fraction);

}  // namespace verbatim::perf
