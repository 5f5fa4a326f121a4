// SPDX-License-Identifier: BSD-2-Clause
// Charts as SVG that stands in an HTML page: colours are classes of the page's style, so that one
// drawing serves light and dark. Any thread; pure. All text is escaped here.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "perf/support/record.hpp"

namespace verbatim::cli {

enum class Line { kSolid, kBase, kFloor };  // measured; the run that it is compared with; a limit

struct Curve {
  std::string label;
  unsigned colour = 0;
  Line line = Line::kSolid;
  std::vector<std::pair<double, double>> points;  // ascending
};

struct Chart {
  std::string title;  // for who cannot see it
  bool sizes = true;  // of the x axis: bytes, else plain numbers; always by doublings
  std::string x_name;
  std::string unit;    // "ns" is written as ns, us or ms
  bool log_y = false;  // else from zero
  std::vector<Curve> curves;
};

std::string draw_chart(const Chart& chart);

/// Samples by level, both logarithmic, with p50, p99 and p99.9; `base` may be empty.
std::string draw_distribution(const perf::Record& record, const std::vector<perf::Level>& base);

struct ChangeBar {
  std::string label;
  double change;  // of the median, as a part
  bool significant;
  bool worse;
};
std::string draw_changes(const std::vector<ChangeBar>& bars);

std::string escaped_html(const std::string& text);
/// "640 ns", "1.25 us", "12.4 GB/s".
std::string with_unit(double value, const std::string& unit);

}  // namespace verbatim::cli
