// SPDX-License-Identifier: BSD-2-Clause
#include "perf/peers/verdict.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "perf/support/json.hpp"
#include "perf/support/table.hpp"

namespace verbatim::perf {

bool Verdict::passes() const {
  const double value = values.median();
  return sense == Sense::kAtMost ? value <= target : value >= target;
}

bool Verdict::less_is_better() const {
  if (sense != Sense::kShown) return sense == Sense::kAtMost;
  const std::string& measured = of.empty() ? unit : of;
  return measured != "million/s" && measured != "GB/s";
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

namespace {

const char* words_of(Sense sense) {
  return sense == Sense::kAtMost ? "at most" : sense == Sense::kAtLeast ? "at least" : "";
}

/// What a program says when it fails may be long, and who reads records refuses that.
std::string shortened(const std::string& text) {
  constexpr std::size_t kMost = 400;
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

}  // namespace

std::vector<Record> records_of(const std::vector<Verdict>& verdicts, const RunAbout& about) {
  std::vector<Record> records;
  for (const Verdict& verdict : verdicts) {
    Record record;
    record.about = about;
    record.kind = "compare";
    // The same words may stand in two rows.
    record.name = verdict.row + " " + verdict.figure;
    record.unit = verdict.unit;
    record.missing = shortened(verdict.missing);
    if (record.missing.empty() && verdict.values.empty()) record.missing = "not measured";
    // A difference of two times may come out below nothing, which no record has.
    for (const double value : verdict.values.values()) record.blocks.add(std::max(0.0, value));
    record.target = {verdict.row,    words_of(verdict.sense),   std::nan(""),
                     verdict.word(), shortened(verdict.detail), verdict.less_is_better()};
    if (verdict.sense != Sense::kShown) record.target.value = verdict.target;
    records.push_back(std::move(record));
  }
  return records;
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

Summary summary_of(const std::vector<Verdict>& verdicts) {
  Summary summary;
  for (const char* word : {"pass", "short", "disturbed", "shown", "not measurable here"}) {
    Summary::Count count{word, 0, {}};
    std::vector<std::pair<std::string, std::size_t>> rows;
    for (const Verdict& verdict : verdicts) {
      if (verdict.word() != word) continue;
      ++count.figures;
      const auto row =
          std::ranges::find(rows, verdict.row, &std::pair<std::string, std::size_t>::first);
      if (row == rows.end())
        rows.emplace_back(verdict.row, 1);
      else
        ++row->second;
    }
    for (const auto& [row, figures] : rows) {
      count.rows += (count.rows.empty() ? "" : ", ") + row;
      if (figures > 1) count.rows += " (" + std::to_string(figures) + ")";
    }
    if (count.figures != 0) summary.counts.push_back(std::move(count));
  }
  return summary;
}

void print_summary(std::FILE* out, const std::vector<Verdict>& verdicts) {
  Table table({"<verdict", "figures", "<rows"});
  for (const Summary::Count& count : summary_of(verdicts).counts)
    table.add({count.verdict, std::to_string(count.figures), count.rows});
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
      row["sense"] = words_of(verdict.sense);
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
  Json summary;
  for (const Summary::Count& count : summary_of(verdicts).counts)
    summary[count.verdict.c_str()] = count.figures;
  const Json all = {{"format", "verbatim-compare-1"},
                    {"processor", processor},
                    {"cores",
                     {{"near", cores.near},
                      {"far", cores.far},
                      {"distinct", cores.distinct},
                      {"note", cores.note}}},
                    {"disturbed", disturbed},
                    {"summary", summary},
                    {"rows", rows}};
  std::fprintf(out, "%s\n", all.text().c_str());
}

}  // namespace verbatim::perf
