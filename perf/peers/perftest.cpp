// SPDX-License-Identifier: BSD-2-Clause
#include "perf/peers/perftest.hpp"

#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace verbatim::perf {

double perftest_column(const std::string& text, int column) {
  std::istringstream lines(text);
  double found = -1;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    std::vector<double> row;
    bool is_row = true;
    for (std::string cell; is_row && cells >> cell;) {
      char* end = nullptr;
      row.push_back(std::strtod(cell.c_str(), &end));
      is_row = *end == '\0';
    }
    if (is_row && row.size() > static_cast<std::size_t>(column))
      found = row[static_cast<std::size_t>(column)];
  }
  if (!(found >= 0)) throw std::runtime_error("perftest printed no row: " + text);
  return found;
}

}  // namespace verbatim::perf
