// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_page_environment.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "perf/cli/perf_page_text.hpp"
#include "perf/support/table.hpp"

namespace verbatim::cli {
namespace {

using perf::Record;
using Records = std::vector<Record>;

/// What the runs of joined files say, the first few of them.
std::string listed(const std::vector<std::string>& all) {
  constexpr std::size_t kMost = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, all.size()); ++i) {
    text += (text.empty() ? "" : " \xc2\xb7 ") + all[i];
  }
  if (all.size() > kMost) text += " and " + std::to_string(all.size() - kMost) + " more";
  return text;
}

std::string part_text(double part) {
  return std::isfinite(part) ? perf::fixed_text(100 * part, 2) + " %" : "unknown";
}

}  // namespace

std::string environment_of(const std::vector<Record>& records, const std::vector<Record>& base) {
  std::string table = "<table><tr><th class=\"l\"></th>";
  std::vector<const Records*> runs = {&records};
  if (!base.empty()) {
    runs.push_back(&base);
    table += "<th class=\"l\">new</th><th class=\"l\">base</th>";
  }
  table += "</tr>\n";
  const auto row = [&](const char* name, const auto& of) {
    table += "<tr>" + tag("td", name, "l");
    for (const Records* run : runs) {
      std::vector<std::string> all;
      std::set<std::string> seen;
      for (const Record& record : *run) {
        const std::string one = of(record.about);
        if (!one.empty() && seen.insert(one).second) all.push_back(one);
      }
      table += tag("td", listed(all), "wide");
    }
    table += "</tr>\n";
  };
  const auto worst = [&](const char* name, double perf::Noise::*part) {
    table += "<tr>" + tag("td", name, "l");
    for (const Records* run : runs) {
      double most = std::numeric_limits<double>::quiet_NaN();
      for (const Record& record : *run) most = std::fmax(most, record.about.noise.*part);
      table += tag("td", part_text(most), "wide");
    }
    table += "</tr>\n";
  };
  row("host", [](auto& run) { return run.host; });
  row("processor", [](auto& run) { return run.processor; });
  row("topology", [](auto& run) { return run.topology; });
  row("kernel", [](auto& run) { return run.kernel; });
  row("build", [](auto& run) { return run.build; });
  row("provider", [](auto& run) { return run.provider; });
  row("measured", [](auto& run) { return run.started; });
  row("seed", [](auto& run) { return std::to_string(run.seed); });
  worst("stolen by the hypervisor", &perf::Noise::stolen);
  worst("waited for a core", &perf::Noise::waited);
  worst("spread of the floor", &perf::Noise::floor_spread);
  return tag("h2", "Environment") + "\n" + card(table + "</table>");
}

}  // namespace verbatim::cli
