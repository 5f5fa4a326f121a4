// SPDX-License-Identifier: BSD-2-Clause
#include "perf/peers/verdict.hpp"

#include <cmath>

#include "perf/support/json.hpp"
#include "perf/support/table.hpp"

namespace verbatim::perf {

bool Verdict::passes() const {
  const double value = values.median();
  return sense == Sense::kAtMost ? value <= target : value >= target;
}

bool Verdict::is_absolute() const {
  for (const char* of_time : {"ns", "us", "ms", "s", "million/s", "GB/s"}) {
    if (unit == of_time) return true;
  }
  return false;
}

std::string Verdict::word() const {
  if (!missing.empty() || values.empty()) return "not measurable here";
  if (sense == Sense::kShown || is_absolute()) return "shown";
  if (disturbed) return "disturbed";
  return passes() ? "pass" : "short";
}

void print_verdicts(std::FILE* out, const std::vector<Verdict>& verdicts) {
  Table table({"<row", "<figure", "target", "value", "<", "spread", "<verdict", "<detail"});
  std::string last;
  for (const Verdict& verdict : verdicts) {
    if (!last.empty() && last != verdict.row) table.add_gap();
    last = verdict.row;
    const char* sign = verdict.sense == Sense::kAtMost ? "<= " : ">= ";
    table.add({verdict.row, verdict.figure,
               verdict.sense == Sense::kShown ? "" : sign + number_text(verdict.target),
               number_text(verdict.values.median()), verdict.unit,
               percent_text(verdict.values.spread()), verdict.word(),
               verdict.missing.empty() ? verdict.detail : verdict.missing});
  }
  table.print(out);
}

void print_verdicts_json(std::FILE* out, const std::string& processor, const CorePair& cores,
                         int disturbed, const std::vector<Verdict>& verdicts) {
  const auto number = [](double value) {
    return std::isfinite(value) ? Json(value) : Json(nullptr);
  };
  Json rows = Json::array();
  for (const Verdict& verdict : verdicts) {
    Json row = {{"row", verdict.row},       {"figure", verdict.figure},
                {"unit", verdict.unit},     {"verdict", verdict.word()},
                {"detail", verdict.detail}, {"missing", verdict.missing}};
    if (verdict.sense != Sense::kShown) {
      row["target"] = verdict.target;
      row["sense"] = verdict.sense == Sense::kAtMost ? "at most" : "at least";
    }
    row["median"] = number(verdict.values.median());
    row["low_quartile"] = number(verdict.values.quantile(0.25));
    row["high_quartile"] = number(verdict.values.quantile(0.75));
    row["spread"] = number(verdict.values.spread());
    row["min"] = number(verdict.values.min());
    row["max"] = number(verdict.values.max());
    row["blocks"] = verdict.values.size();
    rows.push_back(std::move(row));
  }
  const Json all = {{"format", "verbatim-compare-1"},
                    {"processor", processor},
                    {"cores",
                     {{"near", cores.near},
                      {"far", cores.far},
                      {"distinct", cores.distinct},
                      {"note", cores.note}}},
                    {"disturbed", disturbed},
                    {"rows", rows}};
  std::fprintf(out, "%s\n", all.text().c_str());
}

}  // namespace verbatim::perf
