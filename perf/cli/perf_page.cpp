// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_page.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "perf/cli/perf_chart.hpp"
#include "perf/cli/perf_page_environment.hpp"
#include "perf/cli/perf_page_style.hpp"
#include "perf/cli/perf_page_targets.hpp"
#include "perf/cli/perf_page_text.hpp"
#include "perf/figures/comparison.hpp"
#include "perf/figures/fit.hpp"
#include "perf/support/table.hpp"

namespace verbatim::cli {
namespace {

using perf::Record;
using Records = std::vector<Record>;

constexpr std::size_t kCurvesOfAChart = 6, kMostDistributions = 12, kMostChanges = 36;

/// Curves of one kind that belong into one picture: by how they were measured, in which memory.
std::string panel_of(const Record& record) {
  // Costs of different things have nothing in common.
  if (record.kind == "scaling") return record.name;
  std::string panel;
  const auto add = [&panel](const char* words) {
    panel.append(panel.empty() ? "" : ", ").append(words);
  };
  const std::string& name = record.name;
  if (name.starts_with("fresh")) add("Data just written");
  if (name.starts_with("stream")) add("One buffer over and over");
  if (record.kind == "latency" || record.kind == "bandwidth") {
    if (name.find(" mapped") != std::string::npos) add("memory that both map (vbt_alloc_shared)");
    if (name.find(" malloc") != std::string::npos) add("memory of malloc");
  }
  if (name.find(" in lists of ") != std::string::npos) add("posted in lists");
  if (!panel.empty() && panel[0] >= 'a') panel[0] = static_cast<char>(panel[0] - 'a' + 'A');
  return panel;
}

std::string objects_of(const std::string& parameter) {
  return parameter == "qps"     ? "queue pairs"
         : parameter == "mrs"   ? "memory regions"
         : parameter == "peers" ? "peer processes"
                                : parameter;
}

struct Panel {
  std::string kind, name, parameter, unit;
  std::vector<std::string> curves;  // names, in their order
};

class Page {
 public:
  Page(const Records& records, const Records& base)
      : records_(perf::pooled(records)), base_(perf::pooled(base)) {
    name_providers();
  }

  std::string text() const {
    const perf::RunAbout& about = records_.front().about;
    const std::string title =
        "Performance of " + (about.provider.empty() ? std::string("the machine") : about.provider) +
        " on " + (about.host.empty() ? "an unnamed host" : about.host);
    std::string page =
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" "
        "href=\"data:,\">\n" +
        tag("title", title) + "\n<style>" + kPageStyle + "</style>\n</head>\n<body>\n<main>\n" +
        tag("h1", title) + "\n" + head() + tiles();
    page += comparison();
    page += targets_section(records_);
    page += curves("latency", "Latency",
                   "Time of one message: of send and write one way, of read and "
                   "atomics until it is complete. Dashed: the floors of the same run.");
    page += curves("bandwidth", "Bandwidth",
                   "Bytes of payload in a second. Fresh: data just written "
                   "by its producer; stream: one buffer over and over.");
    page += curves("rate", "Message rate", "Small messages in a second, one pair of processes.");
    page += curves("mpi", "MPI", "MPI_Send and MPI_Recv beside the verbs that they are made of.");
    page +=
        curves("collective", "Collectives", "From a rank's call to its return, the mean of ranks.");
    page += distributions();
    page += scaling();
    page += floors();
    page += all_figures();
    return page + environment_of(records_, base_) + "</main>\n</body>\n</html>\n";
  }

 private:
  /// Figures of one name by several providers, in files that were joined, are several.
  void name_providers() {
    std::map<std::string, std::set<std::string>> providers;
    const auto figure = [](const Record& record) { return record.kind + "\n" + record.name; };
    for (const Records* run : {&records_, &base_}) {
      for (const Record& record : *run) {
        if (record.kind != "floor") providers[figure(record)].insert(record.about.provider);
      }
    }
    for (Records* run : {&records_, &base_}) {
      for (Record& record : *run) {
        const auto found = providers.find(figure(record));
        if (found == providers.end() || found->second.size() < 2) continue;
        record.name += " (" + record.about.provider + ")";
      }
    }
  }

  /// Of all runs that the files have.
  std::string why_unreliable() const {
    std::string why;
    std::size_t noisy = 0;
    for (const Record& record : records_) {
      const std::string reason = record.about.noise.unreliable();
      noisy += !reason.empty();
      if (why.empty()) why = reason;
    }
    if (noisy == 0 || noisy == records_.size()) return why;
    return why + " (" + std::to_string(noisy) + " of " + std::to_string(records_.size()) +
           " figures are of a noisy run)";
  }

  std::string head() const {
    const perf::RunAbout& about = records_.front().about;
    const std::string why = why_unreliable();
    return "<p class=\"soft\">" +
           escaped_html(about.processor + " \xc2\xb7 " + about.topology + " \xc2\xb7 " +
                        about.kernel + " \xc2\xb7 " + about.started) +
           "</p>\n<p>" +
           (why.empty() ? tag("span", "quiet while it was measured", "badge good")
                        : tag("span", "unreliable: " + why, "badge bad")) +
           "</p>\n";
  }

  std::string tile(const char* what, const Record* record) const {
    if (record == nullptr) return {};
    std::string text = "<div class=\"tile\">" + tag("span", what) +
                       tag("b", with_unit(record->blocks.median(), record->unit)) +
                       tag("span", record->label());
    if (!record->ratio.empty()) {
      text += tag("span",
                  perf::fixed_text(record->ratio.median(), 2) + " \xc3\x97 " + record->reference);
    }
    return text + "</div>\n";
  }

  std::string tiles() const {
    const Record *fastest = nullptr, *widest = nullptr, *most = nullptr;
    for (const Record& record : records_) {
      if (!record.measured()) continue;
      const double value = record.blocks.median();
      // A READ or an atomic of memory that is mapped is a load, and no message.
      const bool is_message = record.name.starts_with("send") || record.name.starts_with("write");
      if (record.kind == "latency" && is_message &&
          (!fastest || value < fastest->blocks.median())) {
        fastest = &record;
      }
      if (record.kind == "bandwidth" && (!widest || value > widest->blocks.median())) {
        widest = &record;
      }
      if (record.kind == "rate" && (!most || value > most->blocks.median())) most = &record;
    }
    const std::string all = tile("shortest latency", fastest) + tile("highest bandwidth", widest) +
                            tile("highest message rate", most);
    return all.empty() ? all : "<div class=\"tiles\">" + all + "</div>\n";
  }

  /// Panels of a kind: those curves that have more than one point.
  std::vector<Panel> panels_of(const std::string& kind) const {
    std::vector<Panel> panels;
    for (const Record& record : records_) {
      if (record.kind != kind || points_of(records_, record).size() < 2) continue;
      auto panel = std::find_if(panels.rbegin(), panels.rend(), [&](const Panel& one) {
        return one.name == panel_of(record) && one.unit == record.unit &&
               one.parameter == record.parameter;
      });
      if (panel != panels.rend()) {
        bool known = false;
        for (const Panel& one : panels) {
          known |= one.unit == record.unit && one.parameter == record.parameter &&
                   std::find(one.curves.begin(), one.curves.end(), record.name) != one.curves.end();
        }
        if (known) continue;
        if (panel->curves.size() < kCurvesOfAChart) {
          panel->curves.push_back(record.name);
          continue;
        }
      }
      panels.push_back({kind, panel_of(record), record.parameter, record.unit, {record.name}});
    }
    return panels;
  }

  static std::vector<std::pair<double, double>> points_of(const Records& in, const Record& like) {
    std::vector<std::pair<double, double>> points;
    for (const Record& record : in) {
      if (!record.measured() || record.kind != like.kind || record.name != like.name ||
          record.unit != like.unit || record.parameter != like.parameter || record.at == 0) {
        continue;
      }
      points.emplace_back(static_cast<double>(record.at), record.blocks.median());
    }
    std::sort(points.begin(), points.end());
    const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
    points.erase(std::unique(points.begin(), points.end(), same), points.end());
    return points;
  }

  /// The floors that what is shown was held against; where nobody says, those that limit it.
  std::vector<const Record*> floors_of(const Panel& panel) const {
    std::set<std::string> named;
    for (const Record& record : records_) {
      const bool shown =
          record.kind == panel.kind && record.unit == panel.unit &&
          std::find(panel.curves.begin(), panel.curves.end(), record.name) != panel.curves.end();
      if (shown && !record.reference.empty()) named.insert(record.reference);
    }
    const bool of_malloc = panel.name.find("malloc") != std::string::npos;
    std::set<std::string> usual = {"F4"};
    if (!of_malloc && panel.unit == "ns") usual = {"F1", "F4", "F6"};
    if (!of_malloc && panel.unit != "ns") usual = {"F3", "F4", "F9"};
    std::vector<const Record*> floors;
    std::set<std::string> seen;
    for (const Record& record : records_) {
      if (!record.measured() || record.kind != "floor" || record.unit != panel.unit ||
          panel.parameter != "size")
        continue;
      const bool wanted =
          named.empty() ? usual.contains(record.floor) : named.contains(record.name);
      if (wanted && seen.insert(record.name).second) floors.push_back(&record);
    }
    return floors;
  }

  std::string draw(const Panel& panel) const {
    Chart chart;
    chart.title = panel.kind + " " + panel.name;
    chart.sizes = panel.parameter == "size";
    chart.x_name = chart.sizes ? "message size" : "number of " + objects_of(panel.parameter);
    chart.unit = panel.unit;
    chart.log_y = panel.unit == "ns" && panel.kind != "scaling";
    unsigned colour = 0;
    for (const std::string& name : panel.curves) {
      Record like;
      like.kind = panel.kind;
      like.name = name;
      like.unit = panel.unit;
      like.parameter = panel.parameter;
      // A curve that is alone has its name above it.
      const bool is_alone = panel.kind == "scaling" && panel.curves.size() == 1;
      const std::string label = is_alone ? "median" : name;
      chart.curves.push_back({label, colour, Line::kSolid, points_of(records_, like)});
      const auto before = points_of(base_, like);
      if (!before.empty()) chart.curves.push_back({name, colour, Line::kBase, before});
      ++colour;
    }
    for (const Record* floor : floors_of(panel)) {
      auto points = points_of(records_, *floor);
      if (points.empty()) points = {{1, floor->blocks.median()}};
      const std::string number = floor->floor.empty() ? "" : floor->floor + " ";
      chart.curves.push_back({number + floor->name, 7, Line::kFloor, points});
    }
    // A time of nothing has no place on a logarithmic axis.
    if (chart.log_y) {
      for (Curve& curve : chart.curves) {
        std::erase_if(curve.points, [](const auto& point) { return point.second <= 0; });
      }
    }
    std::erase_if(chart.curves, [](const Curve& curve) { return curve.points.empty(); });
    return chart.curves.empty() ? "" : card(draw_chart(chart));
  }

  std::string curves(const std::string& kind, const char* title, const char* note) const {
    std::string text;
    for (const Panel& panel : panels_of(kind)) {
      if (!panel.name.empty()) text += tag("h3", panel.name) + "\n";
      text += draw(panel);
    }
    const std::string rest = of_one_size(kind);
    if (text.empty() && rest.empty()) return {};
    return tag("h2", title) + "\n" + tag("p", note, "note") + "\n" + text + rest;
  }

  static std::string missing_row(const Record& record, int columns) {
    return "<tr>" + tag("td", record.label(), "l") + "<td class=\"wide\" colspan=\"" +
           std::to_string(columns) + "\">" +
           escaped_html("not measurable here: " + record.missing) + "</td></tr>\n";
  }

  std::string of_one_size(const std::string& kind) const {
    std::string rows;
    for (const Record& record : records_) {
      if (record.kind != kind) continue;
      if (!record.missing.empty()) {
        rows += missing_row(record, 5);
        continue;
      }
      if (points_of(records_, record).size() > 1) continue;
      rows += "<tr>" + tag("td", record.label(), "l") +
              tag("td", with_unit(record.blocks.median(), record.unit)) +
              tag("td", perf::percent_text(record.blocks.spread())) +
              tag("td",
                  record.reference.empty() ? "" : with_unit(record.reference_median, record.unit)) +
              tag("td", record.ratio.empty() ? "" : perf::fixed_text(record.ratio.median(), 2)) +
              tag("td", record.reference, "wide") + "</tr>\n";
    }
    if (rows.empty()) return {};
    return card(
        "<table><tr><th class=\"l\">at one size</th><th>median</th><th>spread</th>"
        "<th>floor</th><th>ratio</th><th class=\"l\"></th></tr>\n" +
        rows + "</table>");
  }

  std::string distributions() const {
    std::vector<const Record*> with;
    for (const Record& record : records_) {
      if (!record.levels.empty() && record.kind != "floor") with.push_back(&record);
    }
    std::stable_sort(with.begin(), with.end(), [](auto* a, auto* b) { return a->at < b->at; });
    if (with.size() > kMostDistributions) with.resize(kMostDistributions);
    if (with.empty()) return {};
    std::string text;
    for (const Record* record : with) {
      const Record* before = find(base_, *record);
      text +=
          card(draw_distribution(*record, before ? before->levels : std::vector<perf::Level>{}));
    }
    return tag("h2", "Distributions") + "\n" +
           tag("p",
               std::string("Every message that was timed by itself, outliers too; both axes are "
                           "logarithmic.") +
                   (base_.empty() ? "" : " The outline is the base."),
               "note") +
           "\n<div class=\"pair\">" + text + "</div>\n";
  }

  static const Record* find(const Records& in, const Record& like) {
    for (const Record& record : in) {
      if (record.key() == like.key()) return &record;
    }
    return nullptr;
  }

  static std::string told(perf::Growth growth) {
    const char* const colour = growth == perf::Growth::kFlat    ? "good"
                               : growth == perf::Growth::kGrows ? "bad"
                                                                : "";
    return tag("td", perf::name_of(growth), colour);
  }

  std::string scaling() const {
    std::string charts, rows;
    for (const Panel& panel : panels_of("scaling")) {
      charts += tag("h3", "Cost of: " + panel.name) + "\n" + draw(panel);
      for (const std::string& name : panel.curves) {
        Record like;
        like.kind = "scaling";
        like.name = name;
        like.unit = panel.unit;
        like.parameter = panel.parameter;
        const auto points = points_of(records_, like);
        const perf::Fit fit = perf::fit_over_doublings(points);
        if (points.size() < 3) continue;
        char slope[64];
        std::snprintf(slope, sizeof slope, "%+.2f %% \xc2\xb1 %.2f", 100 * fit.slope,
                      100 * fit.slope_error);
        rows += "<tr>" + tag("td", name, "l") +
                tag("td", perf::fixed_text(points.front().first, 0) + " to " +
                              perf::fixed_text(points.back().first, 0) + " " + panel.parameter) +
                tag("td", with_unit(points.front().second, panel.unit)) +
                tag("td", with_unit(points.back().second, panel.unit)) + tag("td", slope) +
                told(fit.told()) + "</tr>\n";
      }
    }
    for (const Record& record : records_) {
      if (record.kind == "scaling" && !record.missing.empty()) rows += missing_row(record, 5);
    }
    if (charts.empty() && rows.empty()) return {};
    return tag("h2", "Scaling") + "\n" +
           tag("p",
               "Cost of one operation against how many objects there are; the slope is that of "
               "a line fitted over doublings.",
               "note") +
           "\n" + charts +
           (rows.empty()
                ? ""
                : card("<table><tr><th class=\"l\">cost of</th><th>among</th><th>least</th>"
                       "<th>most</th><th>slope of a doubling</th><th></th></tr>\n" +
                       rows + "</table>"));
  }

  std::string comparison() const {
    if (base_.empty()) return {};
    const perf::Comparison found = perf::compare(base_, records_, 0);
    std::vector<ChangeBar> bars;
    std::size_t worse = 0, better = 0;
    for (const perf::Difference& one : found.figures) {
      const bool significant = one.chance < perf::kSignificant && one.change != 0;
      const bool is_worse = (one.change > 0) == one.fresh.lower_is_better();
      worse += significant && is_worse;
      better += significant && !is_worse;
      bars.push_back(
          {one.fresh.kind + ": " + one.fresh.label(), one.change, significant, is_worse});
    }
    std::stable_sort(bars.begin(), bars.end(), [](const ChangeBar& a, const ChangeBar& b) {
      if (a.significant != b.significant) return a.significant;
      return std::fabs(a.change) > std::fabs(b.change);
    });
    const std::size_t all = bars.size();
    if (bars.size() > kMostChanges) bars.resize(kMostChanges);
    std::string text =
        tag("h2", "Compared with the base") + "\n" +
        tag("p",
            std::to_string(all) + " figures are in both runs: " + std::to_string(better) +
                " better and " + std::to_string(worse) +
                " worse beyond chance (Mann-Whitney over all blocks, p < 0.01). Hollow: within "
                "chance. Dotted curves further below are the base." +
                (all > bars.size()
                     ? " Shown are the " + std::to_string(bars.size()) + " that changed most."
                     : "") +
                (found.missing.empty()
                     ? ""
                     : " " + std::to_string(found.missing.size()) + " are in one of them only."),
            "note") +
        "\n";
    if (!found.unreliable.empty()) {
      text += "<p>" + tag("span", "unreliable: " + found.unreliable, "badge bad") + "</p>\n";
    }
    return bars.empty() ? text : text + card(draw_changes(bars));
  }

  std::string floors() const {
    std::string rows;
    for (const Record& record : perf_floors()) {
      rows += "<tr>" + tag("td", record.floor, "l") + tag("td", record.name, "l") +
              tag("td", record.at == 0 || !record.missing.empty() ? "" : size_of(record));
      if (!record.missing.empty()) {
        rows += "<td class=\"wide\" colspan=\"4\">" +
                escaped_html("not measurable here: " + record.missing) + "</td></tr>\n";
        continue;
      }
      rows += tag("td", with_unit(record.blocks.median(), record.unit)) +
              tag("td", with_unit(record.blocks.min(), record.unit)) +
              tag("td", with_unit(record.blocks.max(), record.unit)) +
              tag("td", perf::percent_text(record.blocks.spread())) + "</tr>\n";
    }
    if (rows.empty()) return {};
    return tag("h2", "Floors of this machine") + "\n" +
           card(
               "<table><tr><th class=\"l\"></th><th class=\"l\">what</th><th>size</th>"
               "<th>median</th><th>least</th><th>most</th><th>spread</th></tr>\n" +
               rows + "</table>");
  }

  static std::string size_of(const Record& record) {
    const std::string label = record.label();
    return label.substr(record.name.size() + 2);
  }

  /// By their numbers; those of perf/run have none.
  Records perf_floors() const {
    Records floors;
    for (const Record& record : records_) {
      if (record.kind == "floor") floors.push_back(record);
    }
    const auto number = [](const Record& record) {
      return record.floor.empty() ? 99 : std::atoi(record.floor.c_str() + 1);
    };
    std::stable_sort(floors.begin(), floors.end(),
                     [&](auto& a, auto& b) { return number(a) < number(b); });
    return floors;
  }

  std::string all_figures() const {
    std::string rows;
    for (const Record& record : records_) {
      if (!record.measured() || record.kind == "floor") continue;
      const auto value = [&](double one) { return with_unit(one, record.unit); };
      rows += "<tr>" + tag("td", record.kind, "l") + tag("td", record.label(), "l") +
              tag("td", value(record.blocks.median())) + tag("td", value(record.blocks.min())) +
              tag("td", value(record.blocks.standard_error()));
      for (const double fraction : {0.5, 0.9, 0.99, 0.999, 0.9999}) {
        rows += tag("td", record.levels.empty() ? "" : value(record.percentile(fraction)));
      }
      rows += tag("td", std::isfinite(record.cpu_ns) ? with_unit(record.cpu_ns, "ns") : "") +
              tag("td", std::isfinite(record.switches) ? perf::number_text(record.switches) : "") +
              tag("td", std::isfinite(record.system_calls) ? perf::number_text(record.system_calls)
                                                           : "") +
              "</tr>\n";
    }
    if (rows.empty()) return {};
    return tag("h2", "All figures") + "\n" +
           card(
               "<details><summary>Median, least, standard error, percentiles, processor time, "
               "context switches and system calls of one operation</summary><table><tr><th "
               "class=\"l\">kind</th>"
               "<th class=\"l\">figure</th><th>median</th><th>least</th><th>\xc2\xb1</th>"
               "<th>p50</th><th>p90</th><th>p99</th><th>p99.9</th><th>p99.99</th><th>CPU</th>"
               "<th>switches</th><th>calls</th></tr>\n" +
               rows + "</table></details>");
  }

  Records records_;
  Records base_;
};

}  // namespace

std::string perf_page(const std::vector<perf::Record>& records,
                      const std::vector<perf::Record>& base) {
  return Page(records, base).text();
}

}  // namespace verbatim::cli
