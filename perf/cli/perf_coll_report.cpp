// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_coll_report.hpp"

#include <cstdio>
#include <limits>
#include <numeric>
#include <utility>

#include "perf/cli/perf_ranks.hpp"
#include "perf/support/table.hpp"

namespace verbatim::cli {
namespace {

constexpr int kWidth = 10;
constexpr char kProvider[] = "MPI";

std::string in_us(double ns) { return perf::fixed_text(ns / 1000, 2); }

/// Columns of one width, under which scripts find numbers by their place.
using Columns = std::vector<std::pair<const char*, std::string>>;

Columns columns_of(const CollOptions& options, const CollFigures& f) {
  const std::vector<double>& ranks = f.ranks;
  const double mean = ranks.empty() ? 0
                                    : std::accumulate(ranks.begin(), ranks.end(), 0.0) /
                                          static_cast<double>(ranks.size());
  const double least = ranks.empty() ? 0 : ranks.front(), most = ranks.empty() ? 0 : ranks.back();
  const auto percentile = [&](double part) {
    return in_us(static_cast<double>(f.calls.percentile(part)));
  };
  Columns all = {{"iterations", std::to_string(f.iterations)}};
  const auto add = [&](const char* title, std::string value) {
    all.emplace_back(title, std::move(value));
  };
  if (options.is_nonblocking) {
    add("overall", in_us(f.overall));
    add("compute", in_us(f.compute));
    add("init", in_us(f.begin));
    add("test", in_us(f.test));
    add("wait", in_us(f.wait));
    add("pure", in_us(f.pure));
    add("overlap%", perf::fixed_text(100 * f.overlap, 1));
    if (options.is_full) add("tests", perf::fixed_text(f.tests, 1));
  }
  add("min", in_us(least));
  add("median", in_us(perf::Blocks(ranks).median()));
  add("mean", in_us(mean));
  if (options.is_full) {
    add("max", in_us(most));
    add("fastest", in_us(static_cast<double>(f.calls.min())));
  }
  add("p50", percentile(0.5));
  add("p90", percentile(0.9));
  add("p99", percentile(0.99));
  add("p99.9", percentile(0.999));
  if (options.is_full) add("slowest", in_us(static_cast<double>(f.calls.max())));
  add("arrival", in_us(f.arrival));
  if (options.is_full) {
    add("arr.p99", in_us(f.arrival_p99));
    add("fromlast", in_us(f.after_last));
  }
  if (options.validates) add("wrong", std::to_string(f.wrong));
  return all;
}

}  // namespace

CollReport::CollReport(const CollOptions& options, int ranks)
    : options_(options),
      ranks_(ranks),
      // What is written to the standard output is to be read by programs.
      prints_(options.jsonl != "-" && options.csv != "-"),
      files_(options.jsonl, options.csv) {}

/// What makes two runs comparable.
std::string CollReport::name() const {
  const CollCall& call = *options_.call;
  std::string all = options_.is_nonblocking ? "i" : "";
  all.append(call.name);
  all += " of " + std::to_string(ranks_) + " ranks";
  if (call.reduces)
    all += std::string(", ") + options_.type->name + " " + options_.op->name;
  else if (options_.type->is != CollClass::kText)
    all += std::string(", ") + options_.type->name;
  if (options_.is_in_place) all += ", in place";
  if (options_.root_rotates) all += ", root rotates";
  if (options_.root != 0) all += ", root " + std::to_string(options_.root);
  if (call.gives != CollSide::kNone) all += options_.is_alloc ? ", MPI_Alloc_mem" : ", malloc";
  if (options_.keeps_buffer) all += ", one buffer";
  if (options_.skew_us > 0) all += ", late by up to " + perf::number_text(options_.skew_us) + " us";
  if (options_.tests) all += ", " + std::to_string(*options_.tests) + " MPI_Test";
  if (!options_.algorithm.empty()) all += ", by " + options_.algorithm;
  return all;
}

void CollReport::set_floors(std::optional<PerfRunFloors> floors) {
  floors_ = std::move(floors);
  files_.watch_anew();
}

void CollReport::heading(bool is_one_host) {
  if (!prints_) return;
  std::printf("# verbatim perf coll: %s; times in us\n", name().c_str());
  if (!is_one_host)
    std::printf("# arrival is not told: ranks of several hosts have no clock in common\n");
  std::printf(" #bytes   ");
  for (const auto& [title, value] : columns_of(options_, {})) std::printf(" %*s", kWidth, title);
  std::printf("\n");
  std::fflush(stdout);
}

void CollReport::row(const CollFigures& figures) {
  const UninterruptedReport whole;
  perf::Record& whole_call = add_record("", "ns", figures, figures.blocks, true);
  if (!options_.is_nonblocking) {
    hold(whole_call);
  } else {
    hold(add_record(", by itself", "ns", figures, figures.pure_blocks, false));
    add_record(", overlap", "%", figures, figures.overlap_blocks, false);
  }
  files_.append(records_, kProvider, coll_seed(options_), floor_spread());
  records_.clear();
  if (!prints_) return;
  std::printf(" %-9llu", static_cast<unsigned long long>(figures.bytes));
  for (const auto& [title, value] : columns_of(options_, figures))
    std::printf(" %*s", kWidth, value.c_str());
  std::printf("\n");
  std::fflush(stdout);
}

perf::Record& CollReport::add_record(const char* what, const char* unit, const CollFigures& figures,
                                     const perf::Blocks& blocks, bool has_calls) {
  perf::Record& record = records_.emplace_back();
  record.kind = "collective";
  record.name = name() + what;
  record.at = figures.bytes;
  record.unit = unit;
  record.blocks = blocks;
  if (has_calls) record.levels = perf::levels_of(figures.calls, 1);
  return record;
}

void CollReport::hold(perf::Record& record) {
  if (!floors_) return;
  floors_->hold(&record);
  held_.push_back(record);
}

double CollReport::floor_spread() const {
  return floors_ ? floors_->spread() : std::numeric_limits<double>::quiet_NaN();
}

void CollReport::finish() {
  if (floors_) {
    if (prints_) floors_->print(held_, files_.noise());
    records_ = floors_->records();
    files_.append(records_, kProvider, coll_seed(options_), floor_spread());
  }
  files_.close();
}

}  // namespace verbatim::cli
