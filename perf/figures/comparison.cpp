// SPDX-License-Identifier: BSD-2-Clause
#include "perf/figures/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace verbatim::perf {
namespace {

constexpr std::size_t kFewestBlocks = 5;

struct Pool {
  std::vector<Record> all;                   // in the order of the file
  std::map<std::string, std::size_t> where;  // by key
};

Pool pool(const std::vector<Record>& records) {
  Pool pool;
  for (const Record& record : records) {
    const auto [at, is_new] = pool.where.try_emplace(record.key(), pool.all.size());
    if (is_new) {
      pool.all.push_back(record);
      continue;
    }
    Record& first = pool.all[at->second];
    if (!record.measured()) continue;
    if (!first.measured()) {
      first = record;
      continue;
    }
    for (const double value : record.blocks.values()) first.blocks.add(value);
    if (!record.about.noise.unreliable().empty()) first.about.noise = record.about.noise;
  }
  return pool;
}

Change judge(const Difference& found, double tolerance) {
  if (found.base.disturbed() || found.fresh.disturbed()) return Change::kNotJudged;
  if (!found.base.about.noise.unreliable().empty() ||
      !found.fresh.about.noise.unreliable().empty()) {
    return Change::kNotJudged;
  }
  if (std::min(found.base.blocks.size(), found.fresh.blocks.size()) < kFewestBlocks) {
    return Change::kNotJudged;
  }
  if (found.chance >= kSignificant || std::fabs(found.change) <= tolerance) return Change::kSame;
  return (found.change > 0) == found.fresh.lower_is_better() ? Change::kWorse : Change::kBetter;
}

}  // namespace

const char* name_of(Change change) {
  switch (change) {
    case Change::kSame:
      return "same";
    case Change::kBetter:
      return "better";
    case Change::kWorse:
      return "WORSE";
    case Change::kNotJudged:
      return "not judged";
  }
  return "?";
}

double chance_of_difference(const Blocks& one, const Blocks& other) {
  if (std::min(one.size(), other.size()) < kFewestBlocks) return 1;
  std::vector<std::pair<double, bool>> all;
  for (const double value : one.values()) all.emplace_back(value, true);
  for (const double value : other.values()) all.emplace_back(value, false);
  std::sort(all.begin(), all.end());
  const auto n = static_cast<double>(one.size()), m = static_cast<double>(other.size());
  double ranks_of_one = 0, ties = 0;
  for (std::size_t i = 0; i < all.size();) {
    std::size_t end = i;
    while (end < all.size() && all[end].first == all[i].first) ++end;
    const auto same = static_cast<double>(end - i);
    const double rank = (static_cast<double>(i + end) + 1) / 2;
    ties += same * same * same - same;
    for (; i < end; ++i) ranks_of_one += all[i].second ? rank : 0;
  }
  const double u = ranks_of_one - n * (n + 1) / 2;
  const double sum = n + m;
  const double variance = n * m / 12 * (sum + 1 - ties / (sum * (sum - 1)));
  if (variance <= 0) return 1;  // all are one value
  const double away = std::fabs(u - n * m / 2);
  return std::erfc(away / std::sqrt(2 * variance));
}

std::vector<Record> pooled(const std::vector<Record>& records) { return pool(records).all; }

Comparison compare(const std::vector<Record>& base, const std::vector<Record>& fresh,
                   double tolerance) {
  const Pool before = pool(base), after = pool(fresh);
  Comparison found;
  for (const Record& record : before.all) {
    if (!record.measured()) continue;
    const auto other = after.where.find(record.key());
    if (other == after.where.end() || !after.all[other->second].measured()) {
      found.missing.push_back(record.kind + ": " + record.label() + " (base)");
      ++found.lost;
      continue;
    }
    Difference one{record, after.all[other->second], 0, 1, Change::kSame};
    const double from = record.blocks.median();
    one.change = from > 0 ? one.fresh.blocks.median() / from - 1 : 0;
    one.chance = chance_of_difference(record.blocks, one.fresh.blocks);
    one.verdict = judge(one, tolerance);
    for (const Record* side : {&one.base, &one.fresh}) {
      const std::string why = side->about.noise.unreliable();
      if (!why.empty() && found.unreliable.empty()) {
        found.unreliable = (side == &one.base ? "base: " : "new: ") + why;
      }
    }
    found.figures.push_back(std::move(one));
  }
  for (const Record& record : after.all) {
    if (record.measured() && !before.where.contains(record.key())) {
      found.missing.push_back(record.kind + ": " + record.label() + " (new)");
    }
  }
  return found;
}

}  // namespace verbatim::perf
