// SPDX-License-Identifier: BSD-2-Clause
#include "perf/support/table.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace verbatim::perf {

Table::Table(std::vector<std::string> headings) : headings_(std::move(headings)) {
  for (std::string& heading : headings_) {
    left_.push_back(heading.starts_with('<'));
    if (left_.back()) heading.erase(0, 1);
  }
}

void Table::add(std::vector<std::string> cells) {
  if (cells.size() > headings_.size()) throw std::logic_error("table row has too many cells");
  cells.resize(headings_.size());
  rows_.push_back(std::move(cells));
}

void Table::print(std::FILE* out) const {
  std::vector<std::size_t> widths;
  for (const std::string& heading : headings_) widths.push_back(heading.size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  const auto print_row = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(widths[i] - cells[i].size(), ' ');
      line += left_[i] ? cells[i] + padding : padding + cells[i];
      line += "  ";
    }
    while (line.ends_with(' ')) line.pop_back();
    std::fprintf(out, "%s\n", line.c_str());
  };
  print_row(headings_);
  for (const auto& row : rows_) print_row(row);
}

std::string fixed_text(double value, int decimals) {
  if (std::isnan(value)) return "-";
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string number_text(double value) {
  const double size = std::fabs(value);
  return fixed_text(value, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

std::string percent_text(double fraction) {
  return std::isnan(fraction) ? "-" : fixed_text(100 * fraction, 0) + " %";
}

}  // namespace verbatim::perf
