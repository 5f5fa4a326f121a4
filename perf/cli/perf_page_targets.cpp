// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_page_targets.hpp"

#include <cmath>

#include "perf/cli/perf_chart.hpp"
#include "perf/support/table.hpp"

namespace verbatim::cli {
namespace {

std::string cell(const std::string& text, const char* kind = "") {
  std::string all = "<td";
  if (*kind != '\0') all.append(" class=\"").append(kind).append("\"");
  return all + ">" + escaped_html(text) + "</td>";
}

std::string verdict_cell(const std::string& verdict) {
  const char* const kind = verdict == "pass" ? "badge good" : verdict == "short" ? "badge bad" : "";
  if (*kind == '\0') return cell(verdict, "l");
  return std::string("<td class=\"l\"><span class=\"") + kind + "\">" + escaped_html(verdict) +
         "</span></td>";
}

/// What is compared, and below it the absolute numbers, or why there are none.
std::string figure_cell(const perf::Record& record) {
  const perf::Target& target = record.target;
  const std::string row = target.row + " ";
  const std::string figure =
      record.name.starts_with(row) ? record.name.substr(row.size()) : record.name;
  const std::string& below = record.measured() ? target.detail : record.missing;
  return "<td class=\"two\">" + escaped_html(figure) +
         (below.empty() ? "" : "<span>" + escaped_html(below) + "</span>") + "</td>";
}

std::string row_of(const perf::Record& record) {
  const perf::Target& target = record.target;
  const std::string asked =
      std::isnan(target.value) ? "" : target.sense + " " + perf::number_text(target.value);
  std::string row = "<tr>" + cell(target.row, "l") + figure_cell(record) + cell(asked);
  if (record.measured()) {
    row += cell(perf::number_text(record.blocks.median()) + " " + record.unit) +
           cell(perf::percent_text(record.blocks.spread()));
  } else {
    row += "<td></td><td></td>";
  }
  return row + verdict_cell(target.verdict) + "</tr>\n";
}

}  // namespace

std::string targets_section(const std::vector<perf::Record>& records) {
  std::string rows;
  for (const perf::Record& record : records) {
    if (!record.target.row.empty()) rows += row_of(record);
  }
  if (rows.empty()) return {};
  return "<h2>Targets</h2>\n<p class=\"note\">Ratios are taken in turn with what they are of; a "
         "time or a rate by itself is shown, not judged.</p>\n<div class=\"card\"><table><tr>"
         "<th class=\"l\"></th><th class=\"l\">figure</th><th>target</th><th>value</th>"
         "<th>spread</th><th class=\"l\">verdict</th></tr>\n" +
         rows + "</table></div>\n";
}

}  // namespace verbatim::cli
