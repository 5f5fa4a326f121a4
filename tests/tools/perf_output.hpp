// SPDX-License-Identifier: BSD-2-Clause
//
// The output of `verbatim perf` or perftest, read as scripts read it: columns by their place under
// the line that names them.
#pragma once

#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace verbatim::tools {

using PerfRow = std::vector<double>;

/// The rows of numbers under a line that begins with " #bytes".
inline std::vector<PerfRow> perf_rows(const std::string& out) {
  std::vector<PerfRow> rows;
  std::istringstream lines(out);
  bool under = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(" #bytes", 0) == 0) {
      under = true;
      continue;
    }
    if (line.rfind("---", 0) == 0) under = false;
    if (!under) continue;
    std::istringstream numbers(line);
    PerfRow row;
    for (double number; numbers >> number;) row.push_back(number);
    if (row.size() >= 4) rows.push_back(row);  // others are of -H and -U
  }
  return rows;
}

/// The lines with what they say masked: names of fields, columns and words are left.
inline std::vector<std::string> perf_form(const std::string& out) {
  static const std::regex kField("^( [A-Za-z_* ./]+\t*: ?)[^\t]*(\t\t[A-Z][a-zA-Z ]*: )?.*$");
  static const std::regex kNumber("0x[0-9a-f]+|[0-9]+(\\.[0-9]+)?");
  static const std::regex kBlanks("[ \t]+");
  std::vector<std::string> form;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("address:") == std::string::npos) line = std::regex_replace(line, kField, "$1$2");
    if (line.rfind(" #bytes", 0) != 0) line = std::regex_replace(line, kNumber, "N");
    form.push_back(std::regex_replace(line, kBlanks, " "));
    while (!form.back().empty() && form.back().back() == ' ') form.back().pop_back();
  }
  return form;
}

/// The lines of the floors, behind the report: numbers masked and blanks made one, and nothing of
/// how others used the machine.
inline std::vector<std::string> perf_floor_form(const std::string& out) {
  static const std::regex kDisturbed(" \\(disturbed\\)"), kNumber(" [0-9]+(\\.[0-9]+)?(?= |$)"),
      kBlanks("[ \t]+");
  std::vector<std::string> form;
  const std::size_t begin = out.find("# Floors");
  std::istringstream lines(begin == std::string::npos ? "" : out.substr(begin));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("# unreliable: ", 0) == 0) continue;
    line = std::regex_replace(std::regex_replace(line, kDisturbed, ""), kNumber, " N");
    form.push_back(std::regex_replace(line, kBlanks, " "));
  }
  return form;
}

}  // namespace verbatim::tools
